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

// EventChannel is where the events of ids arrive (rdma_event_channel). It is a descriptor too: a program
// with a loop of its own around poll(2) or epoll(7) finds it by SyscallConn, and calls Get when it is
// readable.
type EventChannel struct {
	devices atomic.Pointer[[]*device] // written under mu
	poll    *poller
	handler Handler       // of CreateID, else nil
	waiting chan struct{} // of capacity 1: full while somebody waits
	again   chan struct{} // of capacity 1: there may be more events, or another device
	ended   chan struct{} // closed by Close
	serving sync.Mutex    // held while a handler runs

	ids atomic.Int32

	mu     sync.Mutex // held while an event is taken, or an id made
	next   int        // the device whose event is taken next
	served bool       // a goroutine calls the handler
	closed bool
}

// CreateEventChannel makes a channel, for ids on these devices (rdma_create_event_channel).
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

// all are the channel's devices.
func (c *EventChannel) all() []*device {
	if all := c.devices.Load(); all != nil {
		return *all
	}
	return nil
}

// append adds a device. The caller holds mu, or nobody else knows the channel.
func (c *EventChannel) append(d *device) {
	all := append(slices.Clone(c.all()), d)
	c.devices.Store(&all)
	c.wakeNext()
}

// wakeNext has a caller of Get look again, now or when it waits next.
func (c *EventChannel) wakeNext() {
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// CreateID makes an id, whose events come through the channel (rdma_create_id). The context is the
// program's own. ErrUnsupported for a port space that is InfiniBand's.
func (c *EventChannel) CreateID(space PortSpace, context any) (*ID, error) {
	return c.CreateIDOfType(space, 0, context)
}

// CreateIDOfType is CreateID for a type of queue pair, which is the id's and its peer's (qp_type of the kernel's
// rdma_create_id): of port space TCP verbs.QPTypeRC, verbs.QPTypeUC, or of XRC verbs.QPTypeXRCSend for one that connects
// and verbs.QPTypeXRCRecv for one that listens. The numbers of SRQs travel as private data. 0 is for that of the port space.
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

// Get gives the next event, and waits for one until ctx is done (rdma_get_cm_event). Several goroutines
// may wait; each event goes to one of them.
//
// When EventMulticastJoin of a full member is given, the id's queue pair has been attached to the group,
// if it has one. If that fails, the event is EventMulticastError.
//
// verbs.ErrObjectClosed when the channel is closed. When all devices are gone, and their events have been
// given, verbs.ErrClosed or verbs.ErrDeviceFatal.
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

// Expect is Get for a program that knows what comes next: an event of another type is an error, with the
// reason if it was a failure.
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
	return event, fmt.Errorf("wait for %v: %w: %v came", want, verbs.ErrInvalid, event.Type)
}

// take gives the oldest event of a device that has one, nil if none has.
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
			c.wakeNext() // a device tells of several events once
			return event, nil
		}
		gone, alive = err, alive || err == nil
	}
	if !alive {
		return nil, gone // and the descriptor stays readable, for others who wait
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

// SyscallConn gives the channel's descriptor, which is readable when there is an event, or a device is
// gone. Nothing can be read from it: Get takes the event.
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
		return fmt.Errorf("destroy event channel: %w: ids whose events come through it: %d; close or migrate them first", verbs.ErrBusy, n)
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

// ready lists what has a value when a device may have an event, if all devices are in this process.
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

// waitInProcess is wait for channels of Go, and so in a bubble of testing/synctest too.
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
