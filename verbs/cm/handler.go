// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"context"
	"fmt"
	"slices"

	"github.com/roced/roced/verbs"
)

// Handler is called for each event of an id (rdma_cm_event_handler); calls for an id and its requests do not overlap.
// An error closes the id of the event. The handler must not close that id, nor the listening one.
type Handler func(*Event) error

// CreateID creates an id with a handler, on these devices (the kernel's rdma_create_id). Ids of requests to it have the
// same handler. qpType 0 means that of the port space (EventChannel.CreateIDOfType).
func CreateID(space PortSpace, qpType verbs.QPType, context any, handler Handler, devices ...*verbs.Context) (*ID, error) {
	if handler == nil {
		return nil, fmt.Errorf("create id: %w: the handler is nil; EventChannel.CreateID creates an id without a handler", verbs.ErrInvalid)
	}
	c, err := newChannel(devices)
	if err != nil {
		return nil, fmt.Errorf("create id: %w", err)
	}
	c.handler, c.served = handler, true
	i, err := c.newID(space, qpType, context)
	if err != nil {
		c.free()
		return nil, fmt.Errorf("create id: %w", err)
	}
	go c.serve()
	return i, nil
}

// serve calls the handler until the channel has no more ids, or no device.
func (c *EventChannel) serve() {
	for {
		c.serving.Lock()
		event, err := c.take()
		if event != nil && c.handler(event) != nil {
			event.ID.abandon()
		}
		c.serving.Unlock()
		if err == nil && event == nil {
			err = c.wait(context.Background())
		}
		if err != nil && c.unserve() {
			return
		}
	}
}

// unserve reports whether there are no more events; false if a device has been added meanwhile.
func (c *EventChannel) unserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served = c.alive() && !c.closed
	return !c.served
}

// alive reports whether a device can have events. The caller holds mu.
func (c *EventChannel) alive() bool {
	return slices.ContainsFunc(c.all(), func(d *device) bool { return d.gone == nil })
}

// serveAgain restarts the calls of the handler, if its channel had no device. The caller holds mu.
func (c *EventChannel) serveAgain() {
	if c.handler != nil && !c.served {
		c.served = true
		go c.serve()
	}
}

// abandon closes an id whose handler has failed. Its queue pair remains open.
func (i *ID) abandon() {
	i.mu.Lock()
	i.joins.detachAll(i.qp)
	i.qp = nil
	c, err := i.channel, i.destroy()
	i.mu.Unlock()
	if err == nil {
		c.leave()
	}
}

// awaitHandler waits until calls of the handler for an id that is now closed have returned.
func (c *EventChannel) awaitHandler() {
	if c.handler != nil {
		c.serving.Lock()
		defer c.serving.Unlock() // only waits
	}
}

// leave records that an id is closed. A channel with a handler ends with its last id.
func (c *EventChannel) leave() {
	if c.ids.Add(-1) == 0 && c.handler != nil {
		_ = c.Close()
	}
}
