package cm

import (
	"context"
	"fmt"
	"slices"

	"github.com/roced/roced/verbs"
)

// Handler is called for each event of an id (rdma_cm_event_handler), one at a time for an id and those of
// the requests to it. An error closes the id that the event is about. It must not close that id, nor the
// one that listens.
type Handler func(*Event) error

// CreateID makes an id with a handler, on these devices (the kernel's rdma_create_id). Ids of requests to
// it have the same handler. A qpType of 0 is that of the port space (EventChannel.CreateIDOfType).
func CreateID(space PortSpace, qpType verbs.QPType, context any, handler Handler, devices ...*verbs.Context) (*ID, error) {
	if handler == nil {
		return nil, fmt.Errorf("create id: %w: no handler; EventChannel.CreateID makes an id without one", verbs.ErrInvalid)
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

// serve calls the handler until the channel has no ids any more, or its devices are gone.
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

// unserve says whether there are no more events; false if a device has come meanwhile.
func (c *EventChannel) unserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served = c.alive() && !c.closed
	return !c.served
}

// alive says whether events can come of a device. The caller holds mu.
func (c *EventChannel) alive() bool {
	return slices.ContainsFunc(c.all(), func(d *device) bool { return d.gone == nil })
}

// serveAgain has the handler called again, if its channel had no devices any more. The caller holds mu.
func (c *EventChannel) serveAgain() {
	if c.handler != nil && !c.served {
		c.served = true
		go c.serve()
	}
}

// abandon closes an id whose handler has failed. Its queue pair stays with the program.
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

// awaitHandler waits until no handler runs that was called for an id which is closed now.
func (c *EventChannel) awaitHandler() {
	if c.handler != nil {
		c.serving.Lock()
		defer c.serving.Unlock() // the wait is all
	}
}

// leave says that an id is closed. A channel that has a handler ends with its last one.
func (c *EventChannel) leave() {
	if c.ids.Add(-1) == 0 && c.handler != nil {
		_ = c.Close()
	}
}
