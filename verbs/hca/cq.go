//go:build linux

package hca

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// cq is a completion queue, with the number of queues that complete to it.
type cq struct {
	handle  provider.Handle
	entry   *datapath.CQ // the engine's part of it
	memory  []byte
	left    []byte       // the queue before the last resize, which the program may still read
	channel *compChannel // of its notifications; nil for none
	owed    atomic.Int64 // notifications that the channel had no room for
	tally   *tally       // of counters that are attached; nil if there are none
	stamped bool
	users   int
	events  eventSource
}

func checkEntries(entries int) error {
	if entries < 1 || entries > maxCQE {
		return fmt.Errorf("%w: a CQ has 1 to %d entries", verbs.ErrInvalid, maxCQE)
	}
	return nil
}

const (
	stamps = verbs.WCExWithCompletionTimestamp | verbs.WCExWithCompletionTimestampWallclock
	// canCarry is what completions can carry.
	canCarry = stamps | verbs.WCExWithByteLen | verbs.WCExWithImm | verbs.WCExWithQPNum | verbs.WCExWithSrcQP | verbs.WCExWithSLID |
		verbs.WCExWithSL | verbs.WCExWithDLIDPathBits | verbs.WCExWithCVLAN
)

func checkNewCQ(r *provider.CreateCQRequest) error {
	switch {
	case r.CompVector < 0 || r.CompVector >= provider.CompVectors:
		return fmt.Errorf("%w: completion vector %d; there are %d, from 0", verbs.ErrInvalid, r.CompVector, provider.CompVectors)
	case r.WCFlags&^canCarry != 0:
		return fmt.Errorf("%w: completions with %#x; they can carry %#x", verbs.ErrUnsupported, uint64(r.WCFlags), uint64(canCarry))
	case r.Flags&^verbs.CQSingleThreaded != 0:
		return fmt.Errorf("%w: CQ flags %#x; an overrun is never ignored", verbs.ErrUnsupported, uint32(r.Flags))
	}
	return checkEntries(r.Entries)
}

// cqGeometry is that of a queue with or without timestamps.
func cqGeometry(entries int, stamped bool) ring.Geometry {
	if stamped {
		return ring.StampedGeometry(uint32(entries))
	}
	return ring.CompletionGeometry(uint32(entries))
}

// createCQ carries out provider.CreateCQ.
func createCQ(s *Session, r provider.CreateCQRequest) (grant provider.CreateCQGrant, err error) {
	if err := checkNewCQ(&r); err != nil {
		return grant, err
	}
	if err := s.begin(); err != nil {
		return grant, err
	}
	defer s.life.work.Done()
	c := &cq{events: eventSource{id: r.EventID, kind: ObjectCQ}, stamped: r.WCFlags&stamps != 0}
	grant.Geometry = cqGeometry(r.Entries, c.stamped)
	queue, memory, err := newCompletionQueue(s, grant.Geometry)
	if err != nil {
		return provider.CreateCQGrant{}, err
	}
	c.memory, grant.Memory = memory, memory
	c.entry = &datapath.CQ{
		Session: s.entry,
		Queue:   queue, QPs: map[*datapath.QP]struct{}{},
		NoteOverrun: func() { s.note(&c.events, notedEvent(verbs.EventCQErr)) },
	}
	c.entry.Wake, grant.Events = waker(s, r.EventID)
	if grant.CQ, err = addCQ(s, c, r.Channel); err != nil {
		s.release(memory)
		return provider.CreateCQGrant{}, err
	}
	return grant, nil
}

// newCompletionQueue makes the card's end of a completion queue, in new memory.
func newCompletionQueue(s *Session, g ring.Geometry) (queue *ring.CompletionProducer, memory []byte, err error) {
	if memory, err = s.alloc(g.Size()); err != nil {
		return nil, nil, err
	}
	if queue, err = ring.NewCompletionProducer(memory, g); err != nil {
		s.release(memory)
		return nil, nil, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	return queue, memory, nil
}

// addCQ adds a queue to the session's table, and to its channel.
func addCQ(s *Session, c *cq, channel provider.Handle) (handle provider.Handle, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.card.mu.Unlock()
	if channel != 0 {
		if c.channel, err = s.channels.Get(channel); err != nil {
			return 0, err
		}
	}
	if handle, err = s.cqs.Add(c); err != nil {
		return 0, err
	}
	c.handle, c.events.number = handle, uint32(handle)
	c.entry.Notify = func() {} // without a channel, arming has no effect
	if c.channel != nil {
		c.channel.add(c)
		c.entry.Notify = func() { c.channel.notify(c) }
	}
	return handle, nil
}

// waker returns the function that wakes the goroutines waiting for a CQ: SessionConfig.Wake, or one that sends to events.
func waker(s *Session, id uint64) (wake func(), events chan struct{}) {
	if tell := s.config.Wake; tell != nil {
		return func() { tell(id) }, nil
	}
	events = make(chan struct{}, 1)
	return func() {
		select {
		case events <- struct{}{}:
		default: // an event waits already
		}
	}, events
}

// destroyCQ carries out provider.DestroyCQ.
func destroyCQ(s *Session, r provider.DestroyCQRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.cqs.Get(r.CQ)
	if err != nil {
		return err
	}
	if c.users > 0 {
		return fmt.Errorf("%w: queues that complete to the CQ: %d; close their QPs and SRQs first", verbs.ErrBusy, c.users)
	}
	s.cqs.Remove(r.CQ)
	s.entry.Engine().Do(func() { s.entry.Engine().RemoveCQ(c.entry) })
	if c.channel != nil {
		c.channel.remove(c)
	}
	s.events.forget(&c.events)
	if s.config.Forget != nil {
		s.config.Forget(c.events.id)
	}
	s.release(c.memory, c.left)
	return nil
}

// resizeCQ carries out provider.ResizeCQ. The card begins with the new queue between two rounds. The memory
// of the old one stays the CQ's, since the program reads what is left there.
func resizeCQ(s *Session, r provider.ResizeCQRequest) (grant provider.ResizeCQGrant, err error) {
	if err := checkEntries(r.Entries); err != nil {
		return grant, err
	}
	if err := s.begin(); err != nil {
		return grant, err
	}
	defer s.life.work.Done()
	stamped := false
	if err := withCQ(s, r.CQ, func(c *cq) error { stamped = c.stamped; return nil }); err != nil {
		return grant, err
	}
	grant.Geometry = cqGeometry(r.Entries, stamped)
	queue, memory, err := newCompletionQueue(s, grant.Geometry)
	if err != nil {
		return provider.ResizeCQGrant{}, err
	}
	grant.Memory = memory
	if err := withCQ(s, r.CQ, func(c *cq) error { return c.move(s, queue, memory, r.Entries) }); err != nil {
		s.release(memory)
		return provider.ResizeCQGrant{}, err
	}
	return grant, nil
}

// withCQ does something with a CQ under the card's lock.
func withCQ(s *Session, handle provider.Handle, do func(c *cq) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.cqs.Get(handle)
	if err != nil {
		return err
	}
	return do(c)
}

// move has the card write to a new queue. The program has read the one before the last resize to its end, so its memory
// is released.
func (c *cq) move(s *Session, queue *ring.CompletionProducer, memory []byte, entries int) (err error) {
	s.entry.Engine().Do(func() {
		switch unread := c.entry.Queue.Unread(); {
		case c.entry.Overrun():
			err = fmt.Errorf("%w: the CQ; close it", verbs.ErrCQOverrun)
		case int(unread) > entries:
			err = fmt.Errorf("%w: completions that the CQ holds: %d; poll first", verbs.ErrInvalid, unread)
		default:
			s.entry.Engine().MoveCQ(c.entry, queue)
		}
	})
	if err != nil {
		return err
	}
	s.release(c.left)
	c.left, c.memory = c.memory, memory
	return nil
}

// modifyCQ carries out provider.ModifyCQ.
func modifyCQ(s *Session, r provider.ModifyCQRequest) error {
	m := datapath.Moderation{Count: uint32(r.Count), Period: time.Duration(r.Period) * time.Microsecond}
	return withCQ(s, r.CQ, func(c *cq) error {
		s.entry.Engine().Do(func() { s.entry.Engine().ModerateCQ(c.entry, m) })
		return nil
	})
}

// checkCQ carries out provider.CheckCQ.
func checkCQ(s *Session, r provider.CheckCQRequest) error {
	return withCQ(s, r.CQ, func(c *cq) error {
		s.entry.Engine().Do(func() { s.entry.Engine().CheckCQ(c.entry, r.Armings) })
		return nil
	})
}
