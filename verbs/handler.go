// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"sync"

	"github.com/roced/roced/verbs/provider"
)

// Handlers are functions that the program passes with an object (comp_handler, event_handler) and that the context
// calls. A context has a goroutine for asynchronous events and one for each completion vector in use; they start with
// the first object that needs them and end with Context.Close. Therefore calls of an object's handler do not overlap,
// and a slow handler delays the others of its goroutine. No lock is held: a handler may call any function, including
// Close of its own object. After an object's Close has returned, no further event of it is dequeued, but a call for an
// event dequeued before may still be running.

// NumCompVectors returns the number of completion vectors (num_comp_vectors): CQInitAttr.CompVector is below it.
func (c *Context) NumCompVectors() int { return provider.CompVectors }

// handler returns the handler of an event; nil if the event is for GetAsyncEvent.
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

// channel returns a vector's channel, and creates it at the first call.
func (v *vectors) channel(c *Context, vector int) (*CompChannel, error) {
	if vector < 0 || vector >= len(v.channels) {
		return nil, fmt.Errorf("%w: completion vector %d; the number of vectors is %d, counted from 0", ErrInvalid, vector, len(v.channels))
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

// callHandlers calls completion handlers until the context is closed.
func callHandlers(channel *CompChannel) {
	for {
		cq, err := channel.next(context.Background(), func(cq *CQ) bool { return !cq.isClosed() })
		if err != nil {
			return
		}
		cq.attr.CompHandler(cq) // it need not acknowledge: the queue may be closed at any time
	}
}
