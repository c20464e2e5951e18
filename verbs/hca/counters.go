// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// maxCountersObjects is the maximum number of counter objects of a session.
const maxCountersObjects = 1024

// counters is a counter object (ibv_counters).
type counters struct{ attached []attachment }

// attachment is a counter of a queue pair or a CQ. It outlives the counted object.
type attachment struct {
	tally *tally
	what  ib.CounterDescription
	index uint32
	from  uint64 // value at the time of attachment
}

// counterSets holds the counter objects of a session.
type counterSets struct {
	handles.Table[counters]
	owner *owner
	cqs   *cqs
	qps   *qps
}

// create carries out provider.CreateCounters.
func (t *counterSets) create() (grant provider.CreateCountersGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	if t.Len() >= maxCountersObjects {
		return grant, fmt.Errorf("%w: the session has %d counter objects, the maximum; close some", verbs.ErrLimit, maxCountersObjects)
	}
	grant.Counters, err = t.Add(new(counters))
	return grant, err
}

// attach carries out provider.AttachCounters.
func (t *counterSets) attach(r provider.AttachCountersRequest) error {
	switch {
	case r.What > ib.CounterErrors:
		return fmt.Errorf("%w: counter description %d", verbs.ErrInvalid, r.What)
	case r.Index >= ib.MaxCounters:
		return fmt.Errorf("%w: counter index %d; there are %d counters, numbered from 0", verbs.ErrInvalid, r.Index, ib.MaxCounters)
	}
	if err := t.owner.enter(); err != nil {
		return err
	}
	defer t.owner.leave()
	c, err := t.Get(r.Counters)
	if err != nil {
		return err
	}
	if len(c.attached) == provider.MaxCounterAttaches {
		return fmt.Errorf("%w: the object has %d attachments, the maximum; create another counter object", verbs.ErrLimit, provider.MaxCounterAttaches)
	}
	a := attachment{what: r.What, index: r.Index}
	if r.What >= ib.CounterCompletions {
		a.tally, err = t.tallyOfCQ(r.Of)
	} else {
		a.tally, err = t.tallyOfQP(r.Of)
	}
	if err != nil {
		return err
	}
	t.owner.engine().Do(func() { a.from = a.tally.value(r.What) })
	a.tally.users++
	c.attached = append(c.attached, a)
	return nil
}

// tallyOfQP returns the tally of a queue pair, and starts counting if no object counts it yet. The caller holds
// card.mu.
func (t *counterSets) tallyOfQP(handle provider.Handle) (*tally, error) {
	q, err := t.qps.Get(handle)
	switch {
	case err != nil:
		return nil, err
	case q.target != nil:
		return nil, fmt.Errorf("%w: an XRC target has no counters, since it belongs to its domain", verbs.ErrUnsupported)
	case q.tally == nil:
		q.tally = &tally{forget: func() { q.tally = nil; q.entry.SetTally(nil) }}
		t.owner.engine().Do(func() { q.entry.SetTally(&q.tally.packets) })
	}
	return q.tally, nil
}

// tallyOfCQ does the same for the completions of a CQ.
func (t *counterSets) tallyOfCQ(handle provider.Handle) (*tally, error) {
	c, err := t.cqs.Get(handle)
	if err != nil {
		return nil, err
	}
	if c.tally == nil {
		c.tally = &tally{forget: func() { c.tally = nil; c.entry.SetTally(nil) }}
		t.owner.engine().Do(func() { c.entry.SetTally(&c.tally.completions) })
	}
	return c.tally, nil
}

// read carries out provider.ReadCounters.
func (t *counterSets) read(r provider.ReadCountersRequest) (grant provider.ReadCountersGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	c, err := t.Get(r.Counters)
	if err != nil {
		return grant, err
	}
	t.owner.engine().Do(func() {
		for _, a := range c.attached {
			grant.Values[a.index] += a.tally.value(a.what) - a.from
		}
	})
	return grant, nil
}

// destroy carries out provider.DestroyCounters. Objects without further attachments are no longer counted.
func (t *counterSets) destroy(r provider.DestroyCountersRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	defer t.owner.leave()
	c, err := t.Get(r.Counters)
	if err != nil {
		return err
	}
	t.Remove(r.Counters)
	t.owner.engine().Do(func() {
		for _, a := range c.attached {
			if a.tally.users--; a.tally.users == 0 {
				a.tally.forget()
			}
		}
	})
	return nil
}
