// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// cq is a completion queue, with the number of queues that complete to it.
type cq struct {
	handle  provider.Handle
	entry   *datapath.CQ // the engine's part of it
	memory  []byte
	left    []byte    // the queue before the last resize, which the program may still read
	channel *notifier // sends its notifications
	tally   *tally    // its attached counters; nil if there are none
	stamped bool
	users   int
	events  eventSource
}

// cqs holds the completion queues of a session.
type cqs struct {
	handles.Table[cq]
	owner    *owner
	channels *channels
}

// tally holds the engine's counts for a queue pair or a CQ with attached counters.
type tally struct {
	packets     datapath.Tally
	completions datapath.CQTally
	forget      func() // ends the counting; called in Do
	users       int
}

// value returns one of the counts. It is called in Do.
func (t *tally) value(what ib.CounterDescription) uint64 {
	p, c := &t.packets, &t.completions
	return [...]uint64{p.Received, p.ReceivedBytes, p.Sent, p.SentBytes, c.Completions, c.Errors}[what]
}

func checkEntries(entries int) error {
	if entries < 1 || entries > maxCQE {
		return fmt.Errorf("%w: a CQ can have 1 to %d entries", verbs.ErrInvalid, maxCQE)
	}
	return nil
}

const (
	stamps = ib.WCExWithCompletionTimestamp | ib.WCExWithCompletionTimestampWallclock
	// canCarry has the supported fields of completions.
	canCarry = stamps | ib.WCExWithByteLen | ib.WCExWithImm | ib.WCExWithQPNum | ib.WCExWithSrcQP | ib.WCExWithSLID |
		ib.WCExWithSL | ib.WCExWithDLIDPathBits | ib.WCExWithCVLAN
)

func checkNewCQ(r *provider.CreateCQRequest) error {
	switch {
	case r.CompVector < 0 || r.CompVector >= provider.CompVectors:
		return fmt.Errorf("%w: completion vector %d; there are %d, numbered from 0", verbs.ErrInvalid, r.CompVector, provider.CompVectors)
	case r.WCFlags&^canCarry != 0:
		return fmt.Errorf("%w: completion fields %#x; supported are %#x", verbs.ErrUnsupported, uint64(r.WCFlags), uint64(canCarry))
	case r.Flags&^verbs.CQSingleThreaded != 0:
		return fmt.Errorf("%w: CQ flags %#x: overruns cannot be ignored", verbs.ErrUnsupported, uint32(r.Flags))
	}
	return checkEntries(r.Entries)
}

// cqGeometry returns the geometry of a queue with or without timestamps.
func cqGeometry(entries int, stamped bool) ring.Geometry {
	if stamped {
		return ring.StampedGeometry(uint32(entries))
	}
	return ring.CompletionGeometry(uint32(entries))
}

// create carries out provider.CreateCQ.
func (t *cqs) create(r provider.CreateCQRequest) (grant provider.CreateCQGrant, err error) {
	if err := checkNewCQ(&r); err != nil {
		return grant, err
	}
	if err := t.owner.begin(); err != nil {
		return grant, err
	}
	defer t.owner.finish()
	c := &cq{events: eventSource{id: r.EventID, kind: ObjectCQ}, stamped: r.WCFlags&stamps != 0}
	grant.Geometry = cqGeometry(r.Entries, c.stamped)
	queue, memory, err := t.newQueue(grant.Geometry)
	if err != nil {
		return provider.CreateCQGrant{}, err
	}
	c.memory, grant.Memory = memory, memory
	c.entry = &datapath.CQ{
		Session: t.owner.entry,
		Queue:   queue, QPs: map[*datapath.QP]struct{}{},
		NoteOverrun: func() { t.owner.events.note(&c.events, notedEvent(verbs.EventCQErr)) },
	}
	c.entry.Wake, grant.Events = t.waker(r.EventID)
	if grant.CQ, err = t.link(c, r.Channel); err != nil {
		t.owner.release(memory)
		return provider.CreateCQGrant{}, err
	}
	return grant, nil
}

// newQueue creates the card's end of a completion queue, in new memory.
func (t *cqs) newQueue(g ring.Geometry) (queue *ring.CompletionProducer, memory []byte, err error) {
	if memory, err = t.owner.alloc(g.Size()); err != nil {
		return nil, nil, err
	}
	if queue, err = ring.NewCompletionProducer(memory, g); err != nil {
		t.owner.release(memory)
		return nil, nil, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	return queue, memory, nil
}

// link adds a queue to the session's table and to its channel.
func (t *cqs) link(c *cq, channel provider.Handle) (handle provider.Handle, err error) {
	if err := t.owner.enter(); err != nil {
		return 0, err
	}
	defer t.owner.leave()
	var to *compChannel // nil: arming the queue has no effect
	if channel != 0 {
		if to, err = t.channels.Get(channel); err != nil {
			return 0, err
		}
	}
	if handle, err = t.Add(c); err != nil {
		return 0, err
	}
	c.handle, c.events.number = handle, uint32(handle)
	c.channel = to.add(c.events.id)
	c.entry.Notify = c.channel.notify
	return handle, nil
}

// waker returns the function that wakes the goroutines waiting for a CQ: SessionConfig.Wake, or one that sends to
// events.
func (t *cqs) waker(id uint64) (wake func(), events chan struct{}) {
	if tell := t.owner.config.Wake; tell != nil {
		return func() { tell(id) }, nil
	}
	events = make(chan struct{}, 1)
	return func() {
		select {
		case events <- struct{}{}:
		default: // an event is pending already
		}
	}, events
}

// destroy carries out provider.DestroyCQ.
func (t *cqs) destroy(r provider.DestroyCQRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	defer t.owner.leave()
	c, err := t.Get(r.CQ)
	if err != nil {
		return err
	}
	if c.users > 0 {
		return fmt.Errorf("%w: %d queues complete to the CQ; close their QPs and SRQs first", verbs.ErrBusy, c.users)
	}
	t.Remove(r.CQ)
	t.owner.engine().Do(func() { c.entry.Remove() })
	c.channel.remove()
	t.owner.events.forget(&c.events)
	if t.owner.config.Forget != nil {
		t.owner.config.Forget(c.events.id)
	}
	t.owner.release(c.memory, c.left)
	return nil
}

// resize carries out provider.ResizeCQ. The card switches to the new queue between two rounds. The CQ keeps the memory
// of the old queue, since the program still reads the remaining completions there.
func (t *cqs) resize(r provider.ResizeCQRequest) (grant provider.ResizeCQGrant, err error) {
	if err := checkEntries(r.Entries); err != nil {
		return grant, err
	}
	if err := t.owner.begin(); err != nil {
		return grant, err
	}
	defer t.owner.finish()
	stamped := false
	if err := t.with(r.CQ, func(c *cq) error { stamped = c.stamped; return nil }); err != nil {
		return grant, err
	}
	grant.Geometry = cqGeometry(r.Entries, stamped)
	queue, memory, err := t.newQueue(grant.Geometry)
	if err != nil {
		return provider.ResizeCQGrant{}, err
	}
	grant.Memory = memory
	if err := t.with(r.CQ, func(c *cq) error { return c.move(t.owner, queue, memory, r.Entries) }); err != nil {
		t.owner.release(memory)
		return provider.ResizeCQGrant{}, err
	}
	return grant, nil
}

// with calls a function with a CQ under the card's lock.
func (t *cqs) with(handle provider.Handle, do func(c *cq) error) error {
	if err := t.owner.enter(); err != nil {
		return err
	}
	defer t.owner.leave()
	c, err := t.Get(handle)
	if err != nil {
		return err
	}
	return do(c)
}

// move makes the card write to a new queue. The program has read the queue before the last resize to its end, so that
// one's memory is released.
func (c *cq) move(o *owner, queue *ring.CompletionProducer, memory []byte, entries int) (err error) {
	o.engine().Do(func() {
		switch unread := c.entry.Queue.Unread(); {
		case c.entry.Overrun():
			err = fmt.Errorf("%w; close the CQ", verbs.ErrCQOverrun)
		case int(unread) > entries:
			err = fmt.Errorf("%w: the CQ holds %d completions, more than the new size; poll first", verbs.ErrInvalid, unread)
		default:
			c.entry.Move(queue)
		}
	})
	if err != nil {
		return err
	}
	o.release(c.left)
	c.left, c.memory = c.memory, memory
	return nil
}

// modify carries out provider.ModifyCQ.
func (t *cqs) modify(r provider.ModifyCQRequest) error {
	m := datapath.Moderation{Count: uint32(r.Count), Period: time.Duration(r.Period) * time.Microsecond}
	return t.with(r.CQ, func(c *cq) error {
		t.owner.engine().Do(func() { c.entry.Moderate(m) })
		return nil
	})
}

// check carries out provider.CheckCQ.
func (t *cqs) check(r provider.CheckCQRequest) error {
	return t.with(r.CQ, func(c *cq) error {
		t.owner.engine().Do(func() { c.entry.Check(r.Armings) })
		return nil
	})
}

// describe describes the object for Session.Objects.
func (c *cq) describe(handle provider.Handle) Object {
	return Object{
		Handle: handle, Users: uint32(c.users), Size: c.entry.Queue.Entries(), Used: c.entry.Queue.Unread(), Failed: c.entry.Overrun(),
	}
}

// releaseAll releases the memory of all queues, at the end of the session.
func (t *cqs) releaseAll() {
	for _, c := range t.All() {
		t.owner.release(c.memory, c.left)
	}
}
