// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"slices"
	"testing"
	"time"
)

// world is a card with connections, and their peers, in simulated time. Its link delivers packets one after another, at
// a constant rate, and responses arrive one round trip later.
type world struct {
	testing.TB
	scheduler Scheduler
	now       time.Time
	ready     []*sender // senders that have a turn, in this order
	events    []event   // future acknowledgements, in the order of their times
	pending   []event   // timeouts of dead peers, in the order of their times
	free      time.Time // time at which the link is free again
	tenants   []*Tenant
	most      [kinds]int // maximum number of packets in flight to peers that have not responded
	strangers [kinds]int
}

// event is an acknowledgement of a sender's packets, or its timeout.
type event struct {
	at      time.Time
	of      *sender
	kind    Kind
	packets int
	bytes   int
}

const (
	tick    = 10 * time.Microsecond
	trip    = 100 * time.Microsecond
	rate    = 5e9 // bytes per second
	timeout = 500 * time.Millisecond
	burst   = 64 // packets of a turn
	frame   = 1024 + 58
)

var start = time.Date(2026, 11, 30, 5, 0, 0, 0, time.UTC)

func newWorld(t testing.TB) *world { return &world{TB: t, now: start, free: start} }

// sender is a connection that sends packets, READs, or both.
type sender struct {
	*world
	flow      Flow
	condition Condition
	length    int        // bytes of its packets, with headers
	left      [kinds]int // packets to send, and to read
	inFlight  [kinds]int
	packets   [kinds]int // acknowledged or read packets
	bytes     [kinds]int
	dead      bool // its peer never responds
	heard     bool // its peer has responded
	silent    bool // the peer has timed out
	turn      bool // it is in ready
	begun     time.Time
	longest   time.Duration // maximum time between two responses, or before the first
	since     time.Time     // time of the last response
}

// sender adds a sender of a tenant, with packets to send and to read.
func (w *world) sender(t *Tenant, sends, reads int) *sender {
	s := &sender{world: w, length: frame, left: [kinds]int{sends, reads}, begun: w.now, since: w.now}
	s.condition = Condition{Reliable: true, Frame: frame}
	s.flow.Open(&w.scheduler, t, s)
	if !slices.Contains(w.tenants, t) {
		w.tenants = append(w.tenants, t)
	}
	s.Ready()
	return s
}

func (w *world) many(t *Tenant, count, sends, reads int) (all []*sender) {
	for range count {
		all = append(all, w.sender(t, sends, reads))
	}
	return all
}

// known makes peers appear as if they had responded before.
func known(all []*sender) []*sender {
	for _, s := range all {
		s.heard = true
		s.flow.Heard()
	}
	return all
}

func died(all []*sender) []*sender {
	for _, s := range all {
		s.dead = true
	}
	return all
}

func (s *sender) Unanswered() (sent, coming int) {
	if s.silent {
		return 0, 0
	}
	return s.inFlight[Sends], s.inFlight[Reads]
}

func (s *sender) Ready() {
	if !s.turn {
		s.turn = true
		s.world.ready = append(s.world.ready, s)
	}
}

// send makes one turn, as package datapath does with package conn.
func (s *sender) send() {
	s.condition.Awaits = !s.silent
	s.flow.Begin(s.now, &s.condition)
	defer s.flow.Settle()
	for sent := 0; sent < burst; {
		k, packets, next := s.next(s.flow.Limits(s.inFlight[Sends], s.inFlight[Reads]))
		if !next && packets > 0 {
			responses := 0
			if k == Reads {
				responses = packets
			}
			if !s.flow.Request(responses) {
				return
			}
			if k, packets, next = s.next(s.flow.Limits(s.inFlight[Sends], s.inFlight[Reads])); !next {
				s.Fatalf("a grant does not suffice for %d packets", packets)
			}
		}
		if !next {
			s.flow.Idle()
			return
		}
		sent++
		s.leave(k, packets)
	}
	s.Ready()
}

// next returns the next packet or READ request that the limits permit; next is false if there is none.
func (s *sender) next(l *Limits) (k Kind, packets int, next bool) {
	switch part := min(l.Part, s.left[Reads]); {
	case s.left[Reads] > 0 && l.Part == 0:
		return Reads, s.left[Reads], true
	case part > 0 && s.inFlight[Reads]+part <= l.Reads:
		return Reads, part, true
	case part > 0 && s.left[Sends] == 0:
		return Reads, part, false
	case s.left[Sends] == 0 || s.inFlight[Sends] >= l.Window:
		return Sends, 0, false
	case l.Grant > 0 || l.Few > 0 && s.inFlight[Sends]+s.left[Sends] <= l.Few:
		return Sends, 1, true
	}
	return Sends, 1, false
}

// leave sends packets, or requests response packets.
func (s *sender) leave(k Kind, packets int) {
	s.left[k] -= packets
	s.inFlight[k] += packets
	if !s.heard {
		s.strangers[k] += packets
		s.most[k] = max(s.most[k], s.strangers[k])
	}
	bytes := packets * s.length
	if k == Sends {
		s.flow.Sent(packets, bytes, 0)
	} else {
		s.flow.Sent(1, frame, packets)
	}
	s.flow.Fly(!s.silent)
	if s.free = s.free.Add(time.Duration(float64(bytes) / rate * 1e9)); s.free.Before(s.now) {
		s.free = s.now
	}
	if s.dead {
		s.pending = append(s.pending, event{at: s.now.Add(timeout), of: s, kind: k, packets: packets})
	} else {
		s.events = append(s.events, event{at: s.free.Add(trip), of: s, kind: k, packets: packets, bytes: bytes})
	}
}

// answered handles acknowledged or read packets.
func (s *sender) answered(e event) {
	s.inFlight[e.kind] -= e.packets
	s.packets[e.kind] += e.packets
	s.bytes[e.kind] += e.bytes
	s.longest, s.since = max(s.longest, s.now.Sub(s.since)), s.now
	if !s.heard {
		s.heard = true
		for k := range kinds {
			s.strangers[k] -= s.inFlight[k]
		}
		s.strangers[e.kind] -= e.packets
	}
	s.flow.Heard()
	s.flow.Answered(s.now, true)
	if s.inFlight == [kinds]int{} {
		s.flow.Fly(false)
	}
	s.Ready()
}

// expired handles a timeout. The connection's further retries do not affect other connections and are not simulated.
func (s *sender) expired() {
	if s.silent {
		return
	}
	s.silent = true
	if !s.heard {
		for k := range kinds {
			s.strangers[k] -= s.inFlight[k]
		}
	}
	s.inFlight = [kinds]int{}
	s.left = [kinds]int{}
	s.flow.Answered(s.now, false)
	s.flow.Fly(false)
}

// run advances the time until done returns true, and fails if the limit is exceeded.
func (w *world) run(limit time.Duration, done func() bool) {
	w.Helper()
	for end := w.now.Add(limit); !done(); w.now = w.now.Add(tick) {
		if w.now.After(end) {
			w.Fatalf("not done after %v", limit)
		}
		w.step()
	}
}

// step handles the events of one time.
func (w *world) step() {
	for len(w.events) > 0 && !w.events[0].at.After(w.now) {
		e := w.events[0]
		w.events = w.events[1:]
		e.of.answered(e)
	}
	for len(w.pending) > 0 && !w.pending[0].at.After(w.now) {
		e := w.pending[0]
		w.pending = w.pending[1:]
		e.of.expired()
	}
	if at := w.scheduler.Deadline(); !at.IsZero() && !at.After(w.now) {
		w.scheduler.Expire(w.now)
	}
	for n := len(w.ready); n > 0; n-- {
		s := w.ready[0]
		w.ready = w.ready[1:]
		s.turn = false
		s.send()
	}
	w.conserves()
}

// conserves checks that no flow waits while there is room for it.
func (w *world) conserves() {
	for _, tenant := range w.tenants {
		tenant.pools(func(p *pool) {
			f := p.head
			if f == nil {
				return
			}
			if f.share = f.divide(); f.share.grant == 0 || p.room(f, f.grants[p.kind].wants) {
				w.Fatalf("%d flows wait and %+v of %+v is granted: there is room for %d", p.waiting, p.granted, f.share.tenant, f.grants[p.kind].wants)
			}
		})
	}
}

// finished reports whether all packets of some senders were acknowledged.
func finished(all []*sender) func() bool {
	return func() bool {
		for _, s := range all {
			if s.left != [kinds]int{} || s.inFlight != [kinds]int{} {
				return false
			}
		}
		return true
	}
}
