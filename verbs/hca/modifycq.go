//go:build linux

package hca

import (
	"fmt"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// ResizeCQ implements provider.Provider. The card begins with the new queue between two rounds. The memory
// of the old one stays the CQ's, since the program reads what is left there.
func (s completions) ResizeCQ(r provider.ResizeCQRequest) (grant provider.ResizeCQGrant, err error) {
	if err := checkEntries(r.Entries); err != nil {
		return grant, err
	}
	if err := s.begin(); err != nil {
		return grant, err
	}
	defer s.life.work.Done()
	stamped := false
	if err := s.withCQ(r.CQ, func(c *cq) error { stamped = c.stamped; return nil }); err != nil {
		return grant, err
	}
	grant.Geometry = cqGeometry(r.Entries, stamped)
	queue, memory, err := s.newQueue(grant.Geometry)
	if err != nil {
		return provider.ResizeCQGrant{}, err
	}
	grant.Memory = memory
	if err := s.withCQ(r.CQ, func(c *cq) error { return s.moveCQ(c, queue, memory, r.Entries) }); err != nil {
		s.release(memory)
		return provider.ResizeCQGrant{}, err
	}
	return grant, nil
}

// withCQ does something with a CQ under the card's lock.
func (s completions) withCQ(handle provider.Handle, do func(c *cq) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.cqs.get(handle)
	if err != nil {
		return err
	}
	return do(c)
}

// moveCQ has the card write another queue. The program has read to its end the queue that the resize
// before has left.
func (s completions) moveCQ(c *cq, queue *ring.CompletionProducer, memory []byte, entries int) (err error) {
	s.card.engine.Do(func() {
		switch unread := c.entry.Queue.Unread(); {
		case c.entry.Overrun():
			err = fmt.Errorf("%w: the CQ; close it", verbs.ErrCQOverrun)
		case int(unread) > entries:
			err = fmt.Errorf("%w: completions that the CQ holds: %d; poll first", verbs.ErrInvalid, unread)
		default:
			s.card.engine.MoveCQ(c.entry, queue)
		}
	})
	if err != nil {
		return err
	}
	s.release(c.left)
	c.left, c.memory = c.memory, memory
	return nil
}

// ModifyCQ implements provider.Provider.
func (s completions) ModifyCQ(r provider.ModifyCQRequest) error {
	m := datapath.Moderation{Count: uint32(r.Count), Period: time.Duration(r.Period) * time.Microsecond}
	return s.withCQ(r.CQ, func(c *cq) error {
		s.card.engine.Do(func() { s.card.engine.ModerateCQ(c.entry, m) })
		return nil
	})
}

// CheckCQ implements provider.Provider.
func (s completions) CheckCQ(r provider.CheckCQRequest) error {
	return s.withCQ(r.CQ, func(c *cq) error {
		s.card.engine.Do(func() { s.card.engine.CheckCQ(c.entry, r.Armings) })
		return nil
	})
}
