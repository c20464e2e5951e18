// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"errors"
	"testing"

	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// A handler gets events of its id, and of requests to it; its error closes the id that the event is about.
func TestHandler(t *testing.T) {
	n := newNetwork(t)
	left, right := device(t, n, "left", "10.0.0.1"), device(t, n, "right", "10.0.0.2")
	heard := make(chan *cm.Event, 10)
	handler := func(e *cm.Event) error {
		defer func() { heard <- e }()
		if e.Type == cm.EventConnectRequest {
			return errors.New("no")
		}
		return nil
	}
	service, err := cm.CreateID(cm.PortSpaceUDP, 0, "a service", handler, right)
	check(t, err)
	check(t, service.Bind(addr("10.0.0.2:7174")))
	check(t, service.Listen(0))
	client, err := cm.CreateID(cm.PortSpaceUDP, 0, nil, handler, left)
	check(t, err)
	check(t, client.ResolveAddr(addr("0.0.0.0:0"), addr("10.0.0.2:7174"), waittest.Limit))
	next := func(id *cm.ID, want cm.EventType) *cm.Event {
		t.Helper()
		event := <-heard
		if event.Type != want || id != nil && event.ID != id {
			t.Fatalf("%v, want %v", event.Type, want)
		}
		return event
	}
	next(client, cm.EventAddrResolved)
	check(t, client.ResolveRoute())
	next(client, cm.EventRouteResolved)
	check(t, client.Connect(nil))
	asked := next(nil, cm.EventConnectRequest)
	if asked.ID.Context != "a service" || asked.Listener != service {
		t.Errorf("%+v", asked)
	}
	if answer := next(client, cm.EventUnreachable); answer.Status != 2 {
		t.Errorf("%+v", answer)
	}
	refused(t, asked.ID.Close(), verbs.ErrObjectClosed)
	check(t, client.Close())
	check(t, service.Close())
	refused(t, service.Close(), verbs.ErrObjectClosed)
}

// TestHandlerOfALaterDevice: an id that listens at all addresses outlives its devices, and gets requests to one that
// comes when all of them have gone.
func TestHandlerOfALaterDevice(t *testing.T) {
	n := newNetwork(t)
	first, later, peer := device(t, n, "first", "10.0.0.1"), device(t, n, "later", "10.0.0.2"), device(t, n, "peer", "10.0.0.3")
	asked := make(chan *cm.ID, 1)
	service, err := cm.CreateID(cm.PortSpaceUDP, 0, nil, func(e *cm.Event) error {
		asked <- e.Listener
		return errors.New("no")
	}, first)
	check(t, err)
	check(t, service.Bind(addr("0.0.0.0:7174")))
	check(t, service.Listen(0))
	check(t, first.Close())
	check(t, service.Channel().AddDevice(later))

	channel, err := cm.CreateEventChannel(peer)
	check(t, err)
	client := newID(t, channel)
	check(t, client.ResolveAddr(addr("0.0.0.0:0"), addr("10.0.0.2:7174"), waittest.Limit))
	expect(t, channel, cm.EventAddrResolved)
	check(t, client.ResolveRoute())
	expect(t, channel, cm.EventRouteResolved)
	check(t, client.Connect(nil))
	if listener := <-asked; listener != service {
		t.Error("another id is asked")
	}
	expect(t, channel, cm.EventUnreachable)
	if at, err := service.LocalAddr(); err != nil || at != addr("0.0.0.0:7174") { // of the device that is left
		t.Errorf("at %v, %v", at, err)
	}
	check(t, service.Close())
	check(t, client.Close())
	check(t, channel.Close())
}

// Close waits for the handler that runs.
func TestCloseWaitsForHandler(t *testing.T) {
	ctx := device(t, newNetwork(t), "host", "10.0.0.1")
	entered, leave, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	id, err := cm.CreateID(cm.PortSpaceUDP, 0, nil, func(*cm.Event) error {
		close(entered)
		<-leave
		close(over)
		return nil
	}, ctx)
	check(t, err)
	check(t, id.ResolveAddr(addr("0.0.0.0:0"), addr("10.0.0.1:1"), waittest.Limit))
	<-entered
	go close(leave)
	check(t, id.Close())
	select {
	case <-over:
	default:
		t.Error("the handler still runs")
	}
}

func TestHandlerRefused(t *testing.T) {
	ctx := device(t, newNetwork(t), "host", "10.0.0.1")
	_, err := cm.CreateID(cm.PortSpaceUDP, 0, nil, nil, ctx)
	refused(t, err, unix.EINVAL)
	_, err = cm.CreateID(cm.PortSpaceUDP, 0, nil, func(*cm.Event) error { return nil })
	refused(t, err, unix.EINVAL)
	_, err = cm.CreateID(7, 0, nil, func(*cm.Event) error { return nil }, ctx)
	refused(t, err, unix.EINVAL)
	_, err = cm.CreateEventChannel(nil)
	refused(t, err, unix.EINVAL)
	id, err := cm.CreateID(cm.PortSpaceUDP, 0, nil, func(*cm.Event) error { return nil }, ctx)
	check(t, err)
	refused(t, id.Migrate(newChannel(t, ctx)), unix.EINVAL)
	check(t, id.Close())
}
