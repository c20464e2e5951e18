package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/roced/roced/verbs/provider"
)

// AsyncEvent is something that happened to a device, apart from completions (ibv_async_event).
type AsyncEvent struct {
	Type EventType
	Port uint8 // of the port's events, else 0
	CQ   *CQ   // of EventCQErr, else nil
	QP   *QP   // of EventQPFatal, EventQPReqErr, EventQPAccessErr, EventCommEst, EventSQDrained, EventQPLastWQEReached and EventPathMigErr, else nil
	SRQ  *SRQ  // of EventSRQLimitReached, else nil
}

// GetAsyncEvent gives the device's next event, and waits for it until ctx is done
// (ibv_get_async_event). Several goroutines may wait; each event goes to one of them.
//
// Events are kept from Open on, each type once for its port, CQ, SRQ or queue pair. An event that
// happens again before it is read moves to the end of the queue. So the queue does not grow when
// nobody reads it, and the last port event that is read tells the port's present state. Events of
// an object that has been closed are dropped; events need no acknowledgement. Events of an object that was made
// with an EventHandler go there, and not here. SyscallConn gives a descriptor for programs that poll(2).
//
// EventDeviceFatal comes when the interface is deleted. By then all outstanding requests have
// completed with WCWRFlushErr. Once the events are read, GetAsyncEvent returns ErrDeviceFatal, as
// do posts and all commands except those that close something. After Close it returns ErrClosed, even
// if events were left. With an error there is no event: look at that first, since the zero AsyncEvent
// has the Type EventCQErr, which is libibverbs' number 0.
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

// event finds the object that a report is about; false if it has been closed since.
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

// eventSources are the objects that events can be about, by their EventIDs. No EventID is used twice;
// the first is 1.
type eventSources struct {
	mu   sync.Mutex
	last uint64
	all  map[uint64]*eventSource
}

// eventSource is an object. An event that comes before its creation is complete waits
// for that.
type eventSource struct {
	made   chan struct{} // closed when object is set, or its creation has failed
	object any           // *CQ, *SRQ, *QP
}

// add gives an EventID to create, and keeps the object that it makes. It calls create under no
// lock.
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

// forget is for an object that has been closed.
func (c *Context) forget(eventID uint64) {
	c.eventSources.remove(eventID)
	c.reader.forget(eventID)
}

func (s *eventSources) remove(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// find gives the object of an EventID, nil if it has been closed.
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
