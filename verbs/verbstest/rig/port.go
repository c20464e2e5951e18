// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
)

// event waits for the next event.
func (d *Device) event() verbs.AsyncEvent {
	d.Helper()
	event, err := d.Ctx.GetAsyncEvent(Guard(d))
	Check(d, err)
	return event
}

// ExpectEvents reads events and compares them in order.
func (d *Device) ExpectEvents(want ...verbs.AsyncEvent) {
	d.Helper()
	for i, w := range want {
		if got := d.event(); got != w {
			d.Errorf("event %d: %v %+v, want %v %+v", i, got.Type, got, w.Type, w)
		}
	}
}

// NoEvent checks that no event is queued.
func (d *Device) NoEvent() {
	d.Helper()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 { // select chooses a random ready case
		if event, err := d.Ctx.GetAsyncEvent(ended); !errors.Is(err, context.Canceled) {
			d.Errorf("event %v, %v", event.Type, err)
		}
	}
}

// HasCounters reports whether the card has counters.
func (d *Device) HasCounters() bool {
	d.Helper()
	_, err := kernel.AllocHWStats(d.Ctx, nil, 0)
	if verbs.KindOf(err) == verbs.ErrUnsupported {
		return false
	}
	Check(d, err)
	return true
}

// AwaitEvent reads events of the port until one of this type occurs.
func (d *Device) AwaitEvent(kind verbs.EventType) {
	d.Helper()
	for {
		event := d.event()
		if event.Port != 1 || event.CQ != nil || event.QP != nil {
			d.Errorf("%+v is not an event of the port", event)
		}
		if event.Type == kind {
			return
		}
	}
}

func (d *Device) PortState() verbs.PortState {
	d.Helper()
	port, err := d.Ctx.QueryPort(1)
	Check(d, err)
	return port.State
}

// Arrives reports whether a message arrives at the peer, which has a receive posted. A link that has just come up may
// drop it.
func (s *Station) Arrives(ah *verbs.AH, peer *Station) bool {
	s.Helper()
	s.Post(s.Send(2, ah, peer.QP))
	s.Expect(OK(2))
	return len(Completions(s, peer.CQ)) > 0
}

func (d *Device) HasGID(address netip.Addr) bool {
	d.Helper()
	gids, err := d.Ctx.QueryGIDTable(1)
	Check(d, err)
	for _, entry := range gids {
		if entry.GID == GID(address) {
			return true
		}
	}
	return false
}

func (d *Device) GIDTableLen() int {
	d.Helper()
	port, err := d.Ctx.QueryPort(1)
	Check(d, err)
	return port.GIDTableLen
}

// EmptyLine returns an unused index of the GID table.
func (d *Device) EmptyLine() int {
	d.Helper()
	gids, err := d.Ctx.QueryGIDTable(1)
	Check(d, err)
	return gids[len(gids)-1].Index + 1
}
