// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/roced/roced/internal/timers"
)

// Scheduler divides the limit of a card's packets in flight among its tenants. The zero Scheduler is ready to use.
type Scheduler struct {
	// Card is the number of tenants in flight of all schedulers of a card; nil: the card has one scheduler.
	Card *atomic.Int32
	// Patience is the time for which flows wait in a pool without any grant before the pool restarts; 0: 50 ms.
	Patience time.Duration

	now      time.Time                 // the last time that the caller passed
	tenants  int                       // number of tenants with flows in flight
	waiting  timers.Heap[*Tenant]      // tenants with waiting flows
	frames   [bits.UintSize + 1]frames // of the flows in flight, indexed by the number of bits of the frame length
	shortest int                       // length of the shortest of these frames, in bytes; 0: no flow is in flight
}

// frames holds the number of flows whose frames have about the same length, and the last of these lengths, in bytes.
type frames struct{ flows, bytes int }

const (
	// defaultPatience is the default of Scheduler.Patience. The flows that hold grants may have dead peers, which are
	// detected only after their timeouts. The patience doubles with each restart after which no packets are
	// acknowledged, at most doublings times.
	defaultPatience = 50 * time.Millisecond
	doublings       = 6
)

// Tenants returns the number of tenants with flows in flight.
func (s *Scheduler) Tenants() int { return s.tenants }

// Deadline returns the time at which to call Expire; zero if no flow waits.
func (s *Scheduler) Deadline() time.Time {
	if first := s.waiting.First(); first != nil {
		return first.At()
	}
	return time.Time{}
}

// Expire restarts the pools whose patience has ended, and reports whether there were any.
func (s *Scheduler) Expire(now time.Time) (some bool) {
	s.now = now
	for due := s.waiting.Due(now); due != nil; due = s.waiting.Due(now) {
		due.Of.expire(now)
		some = true
	}
	return some
}

// patience returns the initial patience.
func (s *Scheduler) patience() time.Duration {
	if s.Patience != 0 {
		return s.Patience
	}
	return defaultPatience
}

// sharers returns the number of tenants among which the card's limit is divided, at least 1.
func (s *Scheduler) sharers() int {
	if s.Card != nil {
		return max(1, int(s.Card.Load()))
	}
	return max(1, s.tenants)
}

// noteTenants adds more to the number of tenants in flight of the scheduler and of the card.
func (s *Scheduler) noteTenants(more int) {
	if s.tenants += more; s.Card != nil {
		s.Card.Add(int32(more))
	}
}

// noteFrames adds more to the number of flows in flight with frames of a length.
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

// unit returns the shortest frame length of the flows in flight and of a flow with the given length.
func (s *Scheduler) unit(length int) int {
	if s.shortest > 0 {
		return min(s.shortest, length)
	}
	return length
}
