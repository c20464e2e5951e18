//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// tallies is a session's objects of counters.
type tallies struct{ *Session }

// maxCountersObjects is how many a session has at most.
const maxCountersObjects = 1024

// counters is what is counted in one object.
type counters struct{ attached []attachment }

// attachment is a counter of a queue pair. It outlives that.
type attachment struct {
	tally *tally
	what  provider.CounterDescription
	index uint32
	from  uint64 // what had been counted already
}

// tally is what the engine counts of a queue pair while somebody wants to know.
type tally struct {
	datapath.Tally
	of    *qp
	users int
}

// value is one of its numbers. It runs in Do.
func (t *tally) value(what provider.CounterDescription) uint64 {
	return [...]uint64{t.Received, t.ReceivedBytes, t.Sent, t.SentBytes}[what]
}

// CreateCounters implements provider.Provider.
func (s tallies) CreateCounters() (grant provider.CreateCountersGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	if s.counters.count() >= maxCountersObjects {
		return grant, fmt.Errorf("%w: %d objects of counters; close some", verbs.ErrLimit, maxCountersObjects)
	}
	grant.Counters, err = s.counters.add(new(counters))
	return grant, err
}

// AttachCounters implements provider.Provider.
func (s tallies) AttachCounters(r provider.AttachCountersRequest) error {
	switch {
	case r.What > provider.CounterSentBytes:
		return fmt.Errorf("%w: counter description %d", verbs.ErrInvalid, r.What)
	case r.Index >= provider.MaxCounters:
		return fmt.Errorf("%w: counter %d; there are %d, from 0", verbs.ErrInvalid, r.Index, provider.MaxCounters)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.counters.get(r.Counters)
	if err != nil {
		return err
	}
	q, err := s.qps.get(r.QP)
	switch {
	case err != nil:
		return err
	case q.target != nil:
		return fmt.Errorf("%w: counters of an XRC target, which is its domain's", verbs.ErrUnsupported)
	case len(c.attached) == provider.MaxCounterAttaches:
		return fmt.Errorf("%w: %d attachments; make another object of counters", verbs.ErrLimit, provider.MaxCounterAttaches)
	}
	a := attachment{what: r.What, index: r.Index}
	s.card.engine.Do(func() {
		if q.tally == nil {
			q.tally = &tally{of: q}
			q.entry.SetTally(&q.tally.Tally)
		}
		a.tally = q.tally
		a.from = q.tally.value(r.What)
	})
	a.tally.users++
	c.attached = append(c.attached, a)
	return nil
}

// ReadCounters implements provider.Provider.
func (s tallies) ReadCounters(r provider.ReadCountersRequest) (grant provider.ReadCountersGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	c, err := s.counters.get(r.Counters)
	if err != nil {
		return grant, err
	}
	s.card.engine.Do(func() {
		for _, a := range c.attached {
			grant.Values[a.index] += a.tally.value(a.what) - a.from
		}
	})
	return grant, nil
}

// DestroyCounters implements provider.Provider. Queue pairs that nobody counts any more cost nothing again.
func (s tallies) DestroyCounters(r provider.DestroyCountersRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.counters.get(r.Counters)
	if err != nil {
		return err
	}
	s.counters.remove(r.Counters)
	s.card.engine.Do(func() {
		for _, a := range c.attached {
			if a.tally.users--; a.tally.users == 0 {
				a.tally.of.tally = nil
				a.tally.of.entry.SetTally(nil)
			}
		}
	})
	return nil
}
