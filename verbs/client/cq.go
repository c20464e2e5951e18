//go:build linux

package client

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// cq is what the client knows of a completion queue.
type cq struct {
	eventID      uint64
	memory, left []byte // its queue, and the one before the last resize
}

// createCQ makes a queue. The queue's events are taken from before it is made.
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

// keepCompletions keeps those that have not been polled when the session has been closed. The service
// waits for the connection to end before it takes the memory back.
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
