// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// cq is the client's part of a completion queue.
type cq struct {
	eventID      uint64
	memory, left []byte // its queue, and the queue before the last resize
}

// createCQ creates a CQ. The channel of its events exists before the service can send one.
func (c *Client) createCQ(r provider.CreateCQRequest) (provider.CreateCQGrant, error) {
	events := make(chan struct{}, 1)
	c.mu.Lock()
	c.events[r.EventID] = events
	c.mu.Unlock()
	grant, err := pass(c, provider.CreateCQ, r)
	grant.Events = events
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.events, r.EventID)
	} else {
		c.cqs[grant.CQ] = cq{eventID: r.EventID, memory: grant.Memory}
	}
	return grant, err
}

// resizeCQ resizes a CQ, and keeps the memory of its old queue, which the program reads to the end.
func (c *Client) resizeCQ(r provider.ResizeCQRequest) (provider.ResizeCQGrant, error) {
	grant, err := pass(c, provider.ResizeCQ, r)
	if err != nil {
		return grant, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.cqs[r.CQ]
	q.left, q.memory = q.memory, grant.Memory
	c.cqs[r.CQ] = q
	return grant, nil
}

// destroyCQ destroys a CQ, and drops the channel of its events.
func (c *Client) destroyCQ(r provider.DestroyCQRequest) error {
	if _, err := pass(c, provider.DestroyCQ, r); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.events, c.cqs[r.CQ].eventID)
	delete(c.cqs, r.CQ)
	return nil
}

// keepCompletions copies the completions that have not been polled when the session is closed. The service waits for the
// connection to end before it reclaims the memory.
func (c *Client) keepCompletions() error {
	c.mu.Lock()
	var queues [][]byte
	for _, q := range c.cqs {
		queues = append(queues, q.memory, q.left)
	}
	c.mu.Unlock()
	if err := c.memory.detach(queues); err != nil {
		return fmt.Errorf("%w: keep completions: %w", verbs.ErrHost, err)
	}
	return nil
}
