package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// AsyncEvent is what happened to a device besides completions (ibv_async_event).
type AsyncEvent struct {
	Type EventType
	Port uint8 // of the port's events, else 0
	CQ   *CQ   // of EventCQErr, else nil
	QP   *QP   // of EventQPFatal, else nil
}

// GetAsyncEvent gives the device's next event, and waits for it until ctx is done
// (ibv_get_async_event). Several goroutines may wait; each event goes to one of them.
//
// Events are kept from Open on, each kind once for its port, CQ or queue pair: one that
// comes again while it waits counts as the new one, and moves to the end. So nothing
// grows when nobody reads, and the last of a port's events that is read tells how the
// port is. Events of a CQ or queue pair that has been closed are not given: there is
// nothing to acknowledge.
//
// EventDeviceFatal comes when the interface is deleted. What is outstanding has been
// completed with WCWRFlushErr by then; once that is polled, and these events are
// read, waiting ends with ErrDeviceFatal, as do posts and all commands but those that
// close something. After Close it is ErrClosed, whatever was not read.
func (c *Context) GetAsyncEvent(ctx context.Context) (AsyncEvent, error) {
	if err := checkContext(ctx); err != nil {
		return AsyncEvent{}, fmt.Errorf("get asynchronous event: %w", err)
	}
	for {
		report, err := c.provider.GetAsyncEvent(ctx)
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

// event finds what a report is about; false if that has been closed since.
func (c *Context) event(r EventReport) (AsyncEvent, bool) {
	event := AsyncEvent{Type: r.Type, Port: r.Port}
	if r.Type != EventCQErr && r.Type != EventQPFatal {
		return event, true
	}
	switch source := c.eventSources.find(r.EventID).(type) {
	case *CQ:
		event.CQ = source
	case *QP:
		event.QP = source
	}
	return event, event.CQ != nil || event.QP != nil
}

// eventSources are the CQs and queue pairs that events can be about, by numbers that the
// card is given for them and that are never used twice.
type eventSources struct {
	mu   sync.Mutex
	last uint64
	all  map[uint64]*eventSource
}

// eventSource is a CQ or a queue pair. While it is being made its events wait for it.
type eventSource struct {
	made   chan struct{} // closed when object is there, or will never be
	object any           // *CQ, *QP
}

// add makes an object, under no lock.
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

func (s *eventSources) remove(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// find gives the object of a number, nil if it has been closed.
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
