// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/roced/roced/verbs/provider"
)

// AsyncEvent is an event of a device, other than a completion (ibv_async_event).
type AsyncEvent struct {
	Type EventType
	Port uint8 // of port events, else 0
	CQ   *CQ   // of EventCQErr, else nil
	QP   *QP   // of EventQPFatal, EventQPReqErr, EventQPAccessErr, EventCommEst, EventSQDrained, EventQPLastWQEReached and EventPathMigErr, else nil
	SRQ  *SRQ  // of EventSRQLimitReached, else nil
}

// GetAsyncEvent returns the device's next event, and waits for it until ctx is done (ibv_get_async_event). Several
// goroutines may wait; each event goes to one of them.
//
// Events are queued from Open on, each type at most once for its port, CQ, SRQ or queue pair. If an event occurs again
// before it is read, it moves to the end of the queue. Therefore the queue is bounded even if it is not read, and the
// last port event read reflects the port's current state. Events of closed objects are dropped; events need no
// acknowledgement. Events of objects created with an EventHandler go only to the handler. SyscallConn returns a
// descriptor for programs that use poll(2).
//
// EventDeviceFatal occurs when the interface is deleted. By then all outstanding requests have completed with
// WCWRFlushErr. After the queued events, GetAsyncEvent returns ErrDeviceFatal, as do posts and all commands except
// those that close objects. After Close it returns ErrClosed, even if events were queued. Check the error first: the
// zero AsyncEvent has the Type EventCQErr, which is libibverbs' number 0.
func (c *Context) GetAsyncEvent(ctx context.Context) (AsyncEvent, error) {
	if c == nil {
		return AsyncEvent{}, fmt.Errorf("get asynchronous event: %w", errNil)
	}
	if err := checkContext(ctx); err != nil {
		return AsyncEvent{}, fmt.Errorf("get asynchronous event: %w", err)
	}
	for {
		report, err := c.nextReport(ctx)
		if err != nil {
			if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
				return AsyncEvent{}, err
			}
			return AsyncEvent{}, fmt.Errorf("get asynchronous event: %w", err)
		}
		if event, ok := c.event(report); ok {
			return event, nil
		}
	}
}

// event finds the object of a report; false if it has been closed since.
func (c *Context) event(r provider.EventReport) (AsyncEvent, bool) {
	event := AsyncEvent{Type: r.Type, Port: r.Port}
	if r.EventID == 0 {
		return event, true
	}
	switch source := c.eventSources.find(r.EventID).(type) {
	case *CQ:
		event.CQ = source
	case *QP:
		event.QP = source
	case *SRQ:
		event.SRQ = source
	default:
		return event, false
	}
	return event, true
}

// eventSources holds the objects that can have events, by their EventIDs. An EventID is never reused; the first is 1.
type eventSources struct {
	mu   sync.Mutex
	last uint64
	all  map[uint64]*eventSource
}

// eventSource is an object. An event that arrives before the creation is complete waits for it.
type eventSource struct {
	made   chan struct{} // closed when object is set, or its creation has failed
	object any           // *CQ, *SRQ, *QP
}

// add passes a new EventID to create, and stores the object that create returns. It holds no lock meanwhile.
func (s *eventSources) add(create func(id uint64) (any, error)) error {
	source := &eventSource{made: make(chan struct{})}
	defer close(source.made)
	s.mu.Lock()
	s.last++
	id := s.last
	s.all[id] = source
	s.mu.Unlock()
	object, err := create(id)
	if err != nil {
		s.remove(id)
		return err
	}
	source.object = object
	return nil
}

// forget removes an object that has been closed.
func (c *Context) forget(eventID uint64) {
	c.eventSources.remove(eventID)
	c.reader.forget(eventID)
}

func (s *eventSources) remove(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// find returns the object of an EventID, or nil if it has been closed.
func (s *eventSources) find(id uint64) any {
	s.mu.Lock()
	source := s.all[id]
	s.mu.Unlock()
	if source == nil {
		return nil
	}
	<-source.made
	return source.object
}
