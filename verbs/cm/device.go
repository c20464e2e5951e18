// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/inside"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// device is a device as a channel uses it.
type device struct {
	ctx      *verbs.Context
	provider provider.Provider
	channel  provider.Handle
	events   *os.File        // readable while there is an event
	ready    <-chan struct{} // receives a value when there may be one; nil over the service

	// Under the channel's lock.
	gone    error                    // the reason why the card has no more events
	removed map[provider.Handle]bool // ids whose device removal has been reported
	bereft  []provider.Handle        // ids whose device removal the card has not reported and no longer can

	mu  sync.Mutex
	ids map[provider.Handle]*ID
}

// in gives access to the session of a context.
var in = inside.Get[inside.Access[*verbs.Context, *verbs.PD, *verbs.MR, *verbs.QP, *verbs.CQ]]()

func newDevice(ctx *verbs.Context, poll *poller) (*device, error) {
	if ctx == nil {
		return nil, fmt.Errorf("%w: a device is nil", verbs.ErrInvalid)
	}
	d := &device{ctx: ctx, provider: in.Provider(ctx), ids: map[provider.Handle]*ID{}, removed: map[provider.Handle]bool{}}
	grant, err := provider.Do(d.provider, provider.CreateEventChannel, provider.None{})
	if err != nil {
		return nil, err
	}
	d.channel, d.events, d.ready = grant.Channel, grant.Events, grant.Ready
	if err := poll.add(d.events); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// close frees the card's end and the program's.
func (d *device) close() {
	_ = provider.Exec(d.provider, provider.DestroyEventChannel, provider.DestroyEventChannelRequest{Channel: d.channel}) // fails only if the card is closed or has failed
	_ = d.events.Close()
}

// take returns the device's oldest event for an open id, or nil; the error is the reason why there will be no more
// events.
func (d *device) take() (*Event, error) {
	for d.gone == nil {
		grant, err := provider.Do(d.provider, provider.GetCMEvent, provider.GetCMEventRequest{Channel: d.channel})
		if err != nil {
			d.gone, d.bereft = err, d.bound(err)
			break
		}
		if grant.Drained {
			d.drain()
		}
		if !grant.Found {
			return nil, nil
		}
		if event := d.event(&grant.Event); event != nil {
			return event, nil
		}
	}
	for len(d.bereft) > 0 {
		i := d.find(d.bereft[0])
		if d.bereft = d.bereft[1:]; i != nil {
			return &Event{Type: EventDeviceRemoval, ID: i}, nil
		}
	}
	return nil, d.gone
}

// bound returns the ids that are bound to a device that is closed or has failed. An embedded card reports them itself.
// Over the service the report may be lost, since the connection ends with the card.
func (d *device) bound(gone error) (ids []provider.Handle) {
	if !errors.Is(gone, verbs.ErrDeviceFatal) {
		return nil // the program has closed it
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for handle, i := range d.ids {
		if i.bound.Load() && !d.removed[handle] {
			ids = append(ids, handle)
		}
	}
	return ids
}

// drain reads the byte that made the channel readable.
func (d *device) drain() {
	raw, err := d.events.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		_, _ = unix.Read(int(fd), make([]byte, 1))
		return true // the byte is there, or never will be
	})
}

// event returns the event for its ids; nil if they have been closed.
func (d *device) event(e *provider.CMEvent) *Event {
	event := &Event{Type: e.Type, Status: int(e.Status), AH: e.AH, ConnParam: e.ConnParam}
	event.Exact = true // ConnParam contains the peer's values
	if e.Type == EventConnectRequest {
		event.Listener = d.find(e.Listener)
		event.ID = d.child(event.Listener, e.ID)
	} else {
		event.ID = d.find(e.ID)
	}
	if e.Type == EventDeviceRemoval {
		d.removed[e.ID] = true
	}
	if event.ID == nil || !event.ID.retrieve(event, e.Context) {
		return nil
	}
	return event
}

func (d *device) find(handle provider.Handle) *ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[handle]
}

func (d *device) enter(handle provider.Handle, i *ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids[handle] = i
}

func (d *device) remove(handle provider.Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ids, handle)
}

// deviceOf returns the channel's device of a context, or nil.
func (c *EventChannel) deviceOf(ctx *verbs.Context) *device {
	for _, d := range c.all() {
		if d.ctx == ctx {
			return d
		}
	}
	return nil
}
