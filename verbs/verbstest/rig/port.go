package rig

import (
	"context"
	"errors"
	"net/netip"

	"github.com/roced/roced/verbs"
)

// event waits for the next one.
func (s *Station) event() verbs.AsyncEvent {
	s.Helper()
	event, err := s.Ctx.GetAsyncEvent(Guard(s))
	Check(s, err)
	return event
}

// ExpectEvents reads events and compares them in their order.
func (s *Station) ExpectEvents(want ...verbs.AsyncEvent) {
	s.Helper()
	for i, w := range want {
		if got := s.event(); got != w {
			s.Errorf("event %d: %v %+v, want %v %+v", i, got.Type, got, w.Type, w)
		}
	}
}

// NoEvent checks that none waits.
func (s *Station) NoEvent() {
	s.Helper()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 { // of several that are ready a select takes any
		if event, err := s.Ctx.GetAsyncEvent(ended); !errors.Is(err, context.Canceled) {
			s.Errorf("event %v, %v", event.Type, err)
		}
	}
}

// HasCounters says whether a station's card counts.
func (s *Station) HasCounters() bool {
	s.Helper()
	_, err := s.Ctx.AllocHWStats(nil, 0)
	if verbs.KindOf(err) == verbs.ErrUnsupported {
		return false
	}
	Check(s, err)
	return true
}

// AwaitEvent reads events of the port until this one has come.
func (s *Station) AwaitEvent(kind verbs.EventType) {
	s.Helper()
	for {
		event := s.event()
		if event.Port != 1 || event.CQ != nil || event.QP != nil {
			s.Errorf("%+v is no event of the port", event)
		}
		if event.Type == kind {
			return
		}
	}
}

func (s *Station) PortState() verbs.PortState {
	s.Helper()
	port, err := s.Ctx.QueryPort(1)
	Check(s, err)
	return port.State
}

// Arrives reports whether a message arrives at the peer, which has a receive posted: on a link
// that has just come up it may not.
func (s *Station) Arrives(ah *verbs.AH, peer *Station) bool {
	s.Helper()
	s.Post(s.Send(2, ah, peer.QP))
	s.Expect(OK(2))
	return len(Completions(s, peer.CQ)) > 0
}

func (s *Station) HasGID(address netip.Addr) bool {
	s.Helper()
	gids, err := s.Ctx.QueryGIDTable(1)
	Check(s, err)
	for _, entry := range gids {
		if entry.GID == GID(address) {
			return true
		}
	}
	return false
}

func (s *Station) GIDTableLen() int {
	s.Helper()
	port, err := s.Ctx.QueryPort(1)
	Check(s, err)
	return port.GIDTableLen
}

// EmptyLine is a line of the GID table that is not in use.
func (s *Station) EmptyLine() int {
	s.Helper()
	gids, err := s.Ctx.QueryGIDTable(1)
	Check(s, err)
	return gids[len(gids)-1].Index + 1
}
