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

// eventReader is a goroutine that takes a context's events from the card, when somebody needs that: an object
// with an event handler, or the descriptor. Then it calls the handlers, and GetAsyncEvent has what they leave.
// Before, callers of GetAsyncEvent ask the card themselves.
type eventReader struct {
	asking sync.RWMutex // read-held by those who ask the card themselves; before mu
	begun  bool         // under asking
	before context.Context
	stop   context.CancelFunc // ends before: those who ask the card stop
	ready  chan struct{}      // of capacity 1: a report may wait
	ended  chan struct{}      // closed when the card has no more for the goroutine

	mu        sync.Mutex
	reports   provider.Reports
	near, far *os.File // the descriptor, and our end of it; nil until it is asked for
	told      bool     // there is a byte in the descriptor
	closed    bool     // there is no descriptor any more
}

func (r *eventReader) init() {
	r.before, r.stop = context.WithCancel(context.Background())
	r.ready, r.ended = make(chan struct{}, 1), make(chan struct{})
}

// readPause is how long the goroutine waits when the card could not be asked.
const readPause = 10 * time.Millisecond

// beginReading starts the goroutine, once. When it returns, nobody else gets events from the card.
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

// readEvents calls handlers, under no lock, and keeps the other events.
func (c *Context) readEvents() {
	r := &c.reader
	defer r.end()
	for {
		report, err := c.provider.GetAsyncEvent(context.Background())
		if err != nil && c.gone() != nil {
			return
		}
		if err != nil { // too many commands wait, say
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
		if _, there := c.event(report); !there { // closed since: forget came too early
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

// take gives the oldest event, and wakes the next reader if there are more.
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

// end wakes all who wait. The descriptor ends behind what is in it.
func (r *eventReader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.ended)
	if r.far != nil {
		_ = r.far.Close()
	}
}

// tell has a byte in the descriptor while an event waits. The caller holds mu.
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
		_ = raw.Read(func(fd uintptr) bool { // what the program has read itself is not there
			_, _ = unix.Read(int(fd), make([]byte, 1))
			return true
		})
	}
}

// descriptor gives the program's end.
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

// close closes the descriptor; what waits for events has ended with the session.
func (r *eventReader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed = true; r.near != nil {
		_ = r.near.Close()
	}
}

// SyscallConn gives a descriptor that is readable while GetAsyncEvent has an event (async_fd of ibv_context), for
// programs with a loop of their own around poll(2) or epoll(7). They then call GetAsyncEvent: with a context that
// is done it gives what is there and does not wait. What is in the descriptor is one byte, however many events there
// are, which GetAsyncEvent takes out with the last one; who reads it, by mistake or to be woken once for
// several, has it readable again with the next event after the last one. It ends (end of file) when
// the device has failed, behind the last event, and is closed by Close. ErrClosed after that.
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

// nextReport gives the next event that no handler gets.
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
			return c.provider.GetAsyncEvent(ctx) // says why
		case <-ctx.Done():
			return provider.EventReport{}, ctx.Err()
		}
	}
}

// askReport asks the card, unless the goroutine does that, or begins to.
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
