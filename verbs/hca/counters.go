//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// maxCountersObjects is how many a session has at most.
const maxCountersObjects = 1024

// counters is what is counted in one object.
type counters struct{ attached []attachment }

// attachment is a counter of a queue pair or a CQ. It outlives that.
type attachment struct {
	tally *tally
	what  provider.CounterDescription
	index uint32
	from  uint64 // what had been counted already
}

// tally is what the engine counts of a queue pair or a CQ while somebody wants to know.
type tally struct {
	packets     datapath.Tally
	completions datapath.CQTally
	forget      func() // ends the counting; it runs in Do
	users       int
}

// value is one of its numbers. It runs in Do.
func (t *tally) value(what provider.CounterDescription) uint64 {
	p, c := &t.packets, &t.completions
	return [...]uint64{p.Received, p.ReceivedBytes, p.Sent, p.SentBytes, c.Completions, c.Errors}[what]
}

// createCounters carries out provider.CreateCounters.
func createCounters(s *Session) (grant provider.CreateCountersGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	if s.counters.Len() >= maxCountersObjects {
		return grant, fmt.Errorf("%w: %d objects of counters; close some", verbs.ErrLimit, maxCountersObjects)
	}
	grant.Counters, err = s.counters.Add(new(counters))
	return grant, err
}

// attachCounters carries out provider.AttachCounters.
func attachCounters(s *Session, r provider.AttachCountersRequest) error {
	switch {
	case r.What > provider.CounterErrors:
		return fmt.Errorf("%w: counter description %d", verbs.ErrInvalid, r.What)
	case r.Index >= provider.MaxCounters:
		return fmt.Errorf("%w: counter %d; there are %d, from 0", verbs.ErrInvalid, r.Index, provider.MaxCounters)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.counters.Get(r.Counters)
	if err != nil {
		return err
	}
	if len(c.attached) == provider.MaxCounterAttaches {
		return fmt.Errorf("%w: %d attachments; make another object of counters", verbs.ErrLimit, provider.MaxCounterAttaches)
	}
	a := attachment{what: r.What, index: r.Index}
	if r.What >= provider.CounterCompletions {
		a.tally, err = tallyOfCQ(s, r.Of)
	} else {
		a.tally, err = tallyOfQP(s, r.Of)
	}
	if err != nil {
		return err
	}
	s.entry.Engine().Do(func() { a.from = a.tally.value(r.What) })
	a.tally.users++
	c.attached = append(c.attached, a)
	return nil
}

// tallyOfQP returns the tally of a queue pair, and begins to count if no object counts it yet. The caller holds card.mu.
func tallyOfQP(s *Session, handle provider.Handle) (*tally, error) {
	q, err := s.qps.Get(handle)
	switch {
	case err != nil:
		return nil, err
	case q.target != nil:
		return nil, fmt.Errorf("%w: counters of an XRC target, which is its domain's", verbs.ErrUnsupported)
	case q.tally == nil:
		q.tally = &tally{forget: func() { q.tally = nil; q.entry.SetTally(nil) }}
		s.entry.Engine().Do(func() { q.entry.SetTally(&q.tally.packets) })
	}
	return q.tally, nil
}

// tallyOfCQ does the same for the completions of a CQ.
func tallyOfCQ(s *Session, handle provider.Handle) (*tally, error) {
	c, err := s.cqs.Get(handle)
	if err != nil {
		return nil, err
	}
	if c.tally == nil {
		c.tally = &tally{forget: func() { c.tally = nil; c.entry.SetTally(nil) }}
		s.entry.Engine().Do(func() { c.entry.SetTally(&c.tally.completions) })
	}
	return c.tally, nil
}

// readCounters carries out provider.ReadCounters.
func readCounters(s *Session, r provider.ReadCountersRequest) (grant provider.ReadCountersGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	c, err := s.counters.Get(r.Counters)
	if err != nil {
		return grant, err
	}
	s.entry.Engine().Do(func() {
		for _, a := range c.attached {
			grant.Values[a.index] += a.tally.value(a.what) - a.from
		}
	})
	return grant, nil
}

// destroyCounters carries out provider.DestroyCounters. Queue pairs that no object counts any more cost nothing again.
func destroyCounters(s *Session, r provider.DestroyCountersRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.counters.Get(r.Counters)
	if err != nil {
		return err
	}
	s.counters.Remove(r.Counters)
	s.entry.Engine().Do(func() {
		for _, a := range c.attached {
			if a.tally.users--; a.tally.users == 0 {
				a.tally.forget()
			}
		}
	})
	return nil
}
