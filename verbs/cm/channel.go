// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/roced/roced/verbs"
)

// EventChannel receives the events of ids (rdma_event_channel). It is also a file descriptor, for programs with their
// own poll(2) or epoll(7) loop: SyscallConn returns it, and the program calls Get when it is readable.
type EventChannel struct {
	devices atomic.Pointer[[]*device] // written under mu
	poll    *poller
	handler Handler       // of CreateID, else nil
	waiting chan struct{} // capacity 1: full while a goroutine waits
	again   chan struct{} // capacity 1: there may be more events, or another device
	ended   chan struct{} // closed by Close
	serving sync.Mutex    // held while a handler runs

	ids atomic.Int32

	mu     sync.Mutex // held while an event is dequeued, or an id is created
	next   int        // the device whose event is dequeued next
	served bool       // a goroutine calls the handler
	closed bool
}

// CreateEventChannel creates a channel, for ids on these devices (rdma_create_event_channel).
func CreateEventChannel(devices ...*verbs.Context) (*EventChannel, error) {
	c, err := newChannel(devices)
	if err != nil {
		return nil, fmt.Errorf("create event channel: %w", err)
	}
	return c, nil
}

func newChannel(contexts []*verbs.Context) (_ *EventChannel, err error) {
	if len(contexts) == 0 {
		return nil, fmt.Errorf("%w: no device", verbs.ErrInvalid)
	}
	c := &EventChannel{waiting: make(chan struct{}, 1), again: make(chan struct{}, 1), ended: make(chan struct{})}
	if c.poll, err = newPoller(); err != nil {
		return nil, err
	}
	for _, ctx := range contexts {
		var d *device
		if d, err = newDevice(ctx, c.poll); err != nil {
			break
		}
		c.append(d)
	}
	if err != nil {
		c.free()
		return nil, err
	}
	return c, nil
}

// all returns the channel's devices.
func (c *EventChannel) all() []*device {
	if all := c.devices.Load(); all != nil {
		return *all
	}
	return nil
}

// append adds a device. The caller holds mu, or has the only reference to the channel.
func (c *EventChannel) append(d *device) {
	all := append(slices.Clone(c.all()), d)
	c.devices.Store(&all)
	c.wakeNext()
}

// wakeNext makes a caller of Get check again, now or at its next wait.
func (c *EventChannel) wakeNext() {
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// CreateID creates an id whose events arrive at the channel (rdma_create_id). The context is for the program's own use.
// ErrUnsupported for port spaces of InfiniBand.
func (c *EventChannel) CreateID(space PortSpace, context any) (*ID, error) {
	return c.CreateIDOfType(space, 0, context)
}

// CreateIDOfType is CreateID for a type of queue pair, which both the id and its peer use (qp_type of the kernel's
// rdma_create_id). Port space TCP supports verbs.QPTypeRC, verbs.QPTypeUC, and for XRC verbs.QPTypeXRCSend (connecting
// end) and verbs.QPTypeXRCRecv (listening end). Programs exchange the numbers of SRQs as private data. 0 means the type
// of the port space.
func (c *EventChannel) CreateIDOfType(space PortSpace, qpType verbs.QPType, context any) (*ID, error) {
	if c == nil {
		return nil, fmt.Errorf("create id: %w", errNil)
	}
	i, err := c.newID(space, qpType, context)
	if err != nil {
		return nil, fmt.Errorf("create id: %w", err)
	}
	return i, nil
}

const getting = "get CM event"

// Get returns the next event, and waits for one until ctx is done (rdma_get_cm_event). Several goroutines may wait;
// each event goes to one of them.
//
// Before Get returns EventMulticastJoin of a full member, it attaches the id's queue pair, if there is one, to the
// group. If that fails, the event is EventMulticastError.
//
// verbs.ErrObjectClosed when the channel is closed; verbs.ErrClosed or verbs.ErrDeviceFatal after the last event when
// all devices are closed or have failed.
func (c *EventChannel) Get(ctx context.Context) (*Event, error) {
	if c == nil {
		return nil, fmt.Errorf(getting+": %w", errNil)
	}
	if ctx == nil {
		return nil, fmt.Errorf(getting+": %w: the context is nil; context.Background() waits without a limit", verbs.ErrInvalid)
	}
	for {
		event, err := c.take()
		if err != nil {
			return nil, fmt.Errorf(getting+": %w", err)
		}
		if event != nil {
			return event, nil
		}
		if err := c.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Expect is Get for a program that expects an event of one type: another type is an error, which contains the reason of
// a failure.
func (c *EventChannel) Expect(ctx context.Context, want EventType) (*Event, error) {
	event, err := c.Get(ctx)
	switch {
	case err != nil:
		return nil, err
	case event.Type == want:
		return event, nil
	case event.Err() != nil:
		return event, fmt.Errorf("wait for %v: %w", want, event.Err())
	}
	return event, fmt.Errorf("wait for %v: %w: got %v", want, verbs.ErrInvalid, event.Type)
}

// take returns the oldest event of a device, or nil.
func (c *EventChannel) take() (*Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("%w: the event channel", verbs.ErrObjectClosed)
	}
	var gone error
	alive := false
	devices := c.all()
	for range devices {
		d := devices[c.next]
		c.next = (c.next + 1) % len(devices)
		event, err := d.take()
		if event != nil {
			c.wakeNext() // a device signals several events once
			return event, nil
		}
		gone, alive = err, alive || err == nil
	}
	if !alive {
		return nil, gone // the descriptor stays readable, for other waiting goroutines
	}
	for _, d := range devices {
		if d.gone != nil {
			_ = d.events.Close()
		}
	}
	return nil, nil
}

// wait returns when a device may have an event, the channel is closed, or ctx is done.
func (c *EventChannel) wait(ctx context.Context) error {
	select {
	case c.waiting <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.waiting }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if ready, all := c.ready(); all {
		return c.waitInProcess(ctx, ready)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.poll.file.SetReadDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	c.poll.wait()
	if !stop() {
		<-interrupted
		_ = c.poll.file.SetReadDeadline(time.Time{})
		return ctx.Err()
	}
	return nil
}

// SyscallConn returns the channel's descriptor, which is readable when there is an event, or a device is closed or has
// failed. It contains no data: Get dequeues the event.
func (c *EventChannel) SyscallConn() (syscall.RawConn, error) {
	if c == nil {
		return nil, fmt.Errorf("descriptor of an event channel: %w", errNil)
	}
	return c.poll.file.SyscallConn()
}

// Close destroys the channel (rdma_destroy_event_channel): verbs.ErrBusy while it has ids.
func (c *EventChannel) Close() error {
	if c == nil {
		return fmt.Errorf("destroy event channel: %w", errNil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("destroy event channel: %w", verbs.ErrObjectClosed)
	}
	if n := c.ids.Load(); n > 0 {
		return fmt.Errorf("destroy event channel: %w: it has %d ids; close or migrate them first", verbs.ErrBusy, n)
	}
	c.closed = true
	c.free()
	return nil
}

// free ends all calls of Get.
func (c *EventChannel) free() {
	for _, d := range c.all() {
		d.close()
	}
	_ = c.poll.file.Close()
	close(c.ended)
}

// ready returns Go channels that receive a value when a device may have an event. all reports whether all devices are
// in this process.
func (c *EventChannel) ready() (list []<-chan struct{}, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.all() {
		switch {
		case d.gone != nil:
		case d.ready == nil:
			return nil, false
		default:
			list = append(list, d.ready)
		}
	}
	return list, len(list) > 0
}

// waitInProcess is wait for Go channels, and therefore also works in a bubble of testing/synctest.
func (c *EventChannel) waitInProcess(ctx context.Context, ready []<-chan struct{}) error {
	if len(ready) == 1 {
		select {
		case <-ready[0]:
		case <-c.again:
		case <-c.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
	var cases []reflect.SelectCase
	for _, from := range append(ready, c.again, c.ended, ctx.Done()) {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(from)})
	}
	reflect.Select(cases)
	return ctx.Err()
}
