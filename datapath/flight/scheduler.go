package flight

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/roced/roced/internal/timers"
)

// Scheduler divides what a card may have in flight among its tenants. The zero Scheduler is ready to use.
type Scheduler struct {
	// Card is the number of tenants in flight of all schedulers of a card; nil: there is one scheduler.
	Card *atomic.Int32
	// Patience is how long flows wait while no grant is given; 0: 50 ms.
	Patience time.Duration

	now      time.Time                 // that the caller has given last
	tenants  int                       // with flows in flight
	waiting  timers.Heap[*Tenant]      // those with waiting flows
	frames   [bits.UintSize + 1]frames // of the flows in flight, by the number of bits of their length
	shortest int                       // of these frames, in bytes; 0: no flow is in flight
}

// frames are the flows whose frames have about the same length.
type frames struct{ flows, bytes int }

const (
	// defaultPatience is how long flows wait while no grant is given: those that have one may have dead peers, which shows
	// only after their time-outs. It doubles each time that nothing is acknowledged even then, at most doublings
	// times.
	defaultPatience = 50 * time.Millisecond
	doublings       = 6
)

// Tenants returns the number of tenants with flows in flight.
func (s *Scheduler) Tenants() int { return s.tenants }

// Deadline returns when Expire is to be called; zero if no flow waits.
func (s *Scheduler) Deadline() time.Time {
	if first := s.waiting.First(); first != nil {
		return first.At()
	}
	return time.Time{}
}

// Expire ends the waits whose patience has ended, and reports whether there were any.
func (s *Scheduler) Expire(now time.Time) (some bool) {
	s.now = now
	for due := s.waiting.Due(now); due != nil; due = s.waiting.Due(now) {
		due.Of.expire(now)
		some = true
	}
	return some
}

// patience is how long flows wait at first.
func (s *Scheduler) patience() time.Duration {
	if s.Patience != 0 {
		return s.Patience
	}
	return defaultPatience
}

// sharers is the number of tenants among which the card is divided.
func (s *Scheduler) sharers() int {
	if s.Card != nil {
		return max(1, int(s.Card.Load()))
	}
	return max(1, s.tenants)
}

// noteTenants notes that there are more or fewer tenants in flight, here and on the card.
func (s *Scheduler) noteTenants(more int) {
	if s.tenants += more; s.Card != nil {
		s.Card.Add(int32(more))
	}
}

// noteFrames notes that more or fewer flows with frames of a length are in flight.
func (s *Scheduler) noteFrames(length, more int) {
	one := &s.frames[bits.Len(uint(length))]
	one.flows += more
	one.bytes = length
	s.shortest = 0
	for i := range s.frames {
		if s.frames[i].flows > 0 {
			s.shortest = s.frames[i].bytes
			return
		}
	}
}

// unit is the length of the shortest frames of a flow in flight, or of one that is about to be.
func (s *Scheduler) unit(length int) int {
	if s.shortest > 0 {
		return min(s.shortest, length)
	}
	return length
}
