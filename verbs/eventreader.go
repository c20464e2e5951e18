// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// eventReader is a goroutine that reads a context's events from the card when that is needed: for an object with an
// event handler, or for the descriptor. It calls the handlers and queues the other events for GetAsyncEvent. Without
// the goroutine, callers of GetAsyncEvent query the card themselves.
type eventReader struct {
	asking sync.RWMutex // read-held by callers that query the card themselves; acquired before mu
	begun  bool         // under asking
	before context.Context
	stop   context.CancelFunc // ends before, so that callers that query the card stop
	ready  chan struct{}      // capacity 1: a report may be queued
	ended  chan struct{}      // closed when the card has no more events

	mu        sync.Mutex
	reports   provider.Reports
	near, far *os.File // the descriptor and its other end; nil until requested
	told      bool     // the descriptor contains a byte
	closed    bool     // the descriptor has been closed
}

func (r *eventReader) init() {
	r.before, r.stop = context.WithCancel(context.Background())
	r.ready, r.ended = make(chan struct{}, 1), make(chan struct{})
}

// readPause is the goroutine's pause after a failed query of the card.
const readPause = 10 * time.Millisecond

// beginReading starts the goroutine, once. After it has returned, only the goroutine reads events from the card.
func (c *Context) beginReading() {
	r := &c.reader
	r.stop()
	r.asking.Lock()
	defer r.asking.Unlock()
	if !r.begun {
		r.begun = true
		go c.readEvents()
	}
}

// readEvents calls handlers, without locks, and queues the other events.
func (c *Context) readEvents() {
	r := &c.reader
	defer r.end()
	for {
		report, err := c.provider.GetAsyncEvent(context.Background())
		if err != nil && c.gone() != nil {
			return
		}
		if err != nil { // for example too many pending commands
			time.Sleep(readPause)
			continue
		}
		event, there := c.event(report)
		if !there {
			continue
		}
		if handler := event.handler(); handler != nil {
			handler(event)
			continue
		}
		r.put(report)
		if _, there := c.event(report); !there { // closed since: forget ran before the event was queued
			r.forget(report.EventID)
		}
	}
}

func (r *eventReader) put(report provider.EventReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports.Put(report)
	r.tell()
	r.wake()
}

// take returns the oldest event, and wakes the next reader if there are more.
func (r *eventReader) take() (report provider.EventReport, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	report, ok = r.reports.Take()
	r.tell()
	if r.reports.Len() > 0 {
		r.wake()
	}
	return report, ok
}

// forget drops the events of an object that has been closed.
func (r *eventReader) forget(eventID uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind := EventCQErr; r.reports.Len() > 0 && kind <= EventGIDChange; kind++ {
		r.reports.Drop(provider.EventReport{Type: kind, EventID: eventID})
	}
	r.tell()
}

func (r *eventReader) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// end wakes all waiting callers. The descriptor reaches end of file after its contents.
func (r *eventReader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.ended)
	if r.far != nil {
		_ = r.far.Close()
	}
}

// tell makes the descriptor contain a byte while an event is queued. The caller holds mu.
func (r *eventReader) tell() {
	if r.far == nil || r.told == (r.reports.Len() > 0) {
		return
	}
	r.told = !r.told
	if r.told {
		_, _ = r.far.Write([]byte{1})
		return
	}
	if raw, err := r.near.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool { // the program may have read the byte itself
			_, _ = unix.Read(int(fd), make([]byte, 1))
			return true
		})
	}
}

// descriptor returns the program's end.
func (r *eventReader) descriptor() (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, ErrClosed
	case r.near != nil:
		return r.near, nil
	}
	near, far, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHost, err)
	}
	r.near, r.far = near, far
	r.tell()
	select {
	case <-r.ended:
		_ = far.Close()
	default:
	}
	return near, nil
}

// close closes the descriptor; calls that wait for events have ended with the session.
func (r *eventReader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed = true; r.near != nil {
		_ = r.near.Close()
	}
}

// SyscallConn returns a descriptor that is readable while GetAsyncEvent has an event (async_fd of ibv_context), for
// programs with their own poll(2) or epoll(7) loop. They then call GetAsyncEvent; with a context that is done, it
// returns queued events without waiting.
//
// The descriptor contains one byte regardless of the number of events, and GetAsyncEvent removes the byte with the last
// event. A program that reads the byte itself finds the descriptor readable again with the first event after the queue
// was empty. When the device has failed, end of file follows the last event. Close closes the descriptor; SyscallConn
// then returns ErrClosed.
func (c *Context) SyscallConn() (syscall.RawConn, error) {
	const doing = "descriptor of asynchronous events"
	if c == nil {
		return nil, fmt.Errorf(doing+": %w", errNil)
	}
	if err := c.gone(); errors.Is(err, ErrClosed) {
		return nil, fmt.Errorf(doing+": %w", err)
	}
	c.beginReading()
	file, err := c.reader.descriptor()
	if err != nil {
		return nil, fmt.Errorf(doing+": %w", err)
	}
	return file.SyscallConn()
}

// nextReport returns the next event that has no handler.
func (c *Context) nextReport(ctx context.Context) (provider.EventReport, error) {
	if report, err, asked := c.askReport(ctx); asked {
		return report, err
	}
	r := &c.reader
	for {
		if errors.Is(c.gone(), ErrClosed) {
			return c.provider.GetAsyncEvent(ctx)
		}
		if report, ok := r.take(); ok {
			return report, nil
		}
		select {
		case <-r.ready:
		case <-r.ended:
			if report, ok := r.take(); ok {
				return report, nil
			}
			return c.provider.GetAsyncEvent(ctx) // returns the reason
		case <-ctx.Done():
			return provider.EventReport{}, ctx.Err()
		}
	}
}

// askReport queries the card, unless the goroutine does so or is starting. asked reports whether it did.
func (c *Context) askReport(ctx context.Context) (report provider.EventReport, err error, asked bool) {
	r := &c.reader
	r.asking.RLock()
	defer r.asking.RUnlock()
	if r.begun {
		return report, nil, false
	}
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.before, func() { cancel(context.Canceled) })()
	report, err = c.provider.GetAsyncEvent(both)
	if ended := ctx.Err(); ended != nil && errors.Is(err, both.Err()) {
		return report, ended, true
	}
	beginning := err != nil && r.before.Err() != nil && c.gone() == nil
	return report, err, !beginning
}
