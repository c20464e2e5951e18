package verbs

import (
	"context"
	"fmt"
	"sync"

	"github.com/roced/roced/verbs/provider"
)

// Handlers: functions that the program gives with an object (comp_handler, event_handler), and that the context
// calls. A context has a goroutine for asynchronous events and one for each completion vector that is in use; they
// begin with the first object that needs them and end with Context.Close. So the handlers of an object
// are never called twice at once for one kind of event, and a slow handler holds up the others of its goroutine.
// No lock is held: a handler may call everything, Close of its own object too. When an object's Close has
// returned, no event of it is taken any more; a call for one that was taken before may still be under way.

// NumCompVectors is how many completion vectors there are (num_comp_vectors): CQInitAttr.CompVector is below it.
func (c *Context) NumCompVectors() int { return provider.CompVectors }

// handler is the one that an event goes to; nil if GetAsyncEvent gives it.
func (e *AsyncEvent) handler() func(AsyncEvent) {
	switch {
	case e.CQ != nil:
		return e.CQ.attr.EventHandler
	case e.QP != nil:
		return e.QP.init.EventHandler
	case e.SRQ != nil:
		return e.SRQ.init.EventHandler
	}
	return nil
}

// vectors are the channels from which completion handlers are called.
type vectors struct {
	mu       sync.Mutex
	channels [provider.CompVectors]*CompChannel
}

// channel gives a vector's, and makes it for the first.
func (v *vectors) channel(c *Context, vector int) (*CompChannel, error) {
	if vector < 0 || vector >= len(v.channels) {
		return nil, fmt.Errorf("%w: completion vector %d; there are %d, from 0", ErrInvalid, vector, len(v.channels))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.channels[vector] != nil {
		return v.channels[vector], nil
	}
	channel, err := c.CreateCompChannel()
	if err != nil {
		return nil, err
	}
	v.channels[vector] = channel
	go callHandlers(channel)
	return channel, nil
}

// callHandlers ends with the context.
func callHandlers(channel *CompChannel) {
	for {
		cq, err := channel.next(context.Background(), func(cq *CQ) bool { return !cq.isClosed() })
		if err != nil {
			return
		}
		cq.attr.CompHandler(cq) // it owes no acknowledgement: the queue may be closed at any time
	}
}
