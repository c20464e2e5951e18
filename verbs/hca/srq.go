// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"
	"slices"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/provider"
)

// srq is a shared receive queue, with the number of queue pairs that receive from it.
type srq struct {
	handle provider.Handle
	entry  *datapath.SRQ // the engine's part of it
	pd     *pd
	memory [][]byte // memory of its queues; the program posts to the last
	unused [][]byte // memory of queues that the last resize found empty: the program may still access it
	maxWR  uint32
	maxSGE uint32
	users  int
	events eventSource
	xrcd   *xrcd // domain of an XRC SRQ, like cq; else nil
	cq     *cq
}

// srqs holds the shared receive queues of a session.
type srqs struct {
	handles.Table[srq]
	owner   *owner
	pds     *pds
	cqs     *cqs                  // for XRC SRQs
	xrcds   *xrcds                // for XRC SRQs
	numbers *handles.Numbers[srq] // for XRC SRQs; the card's
}

// checkSRQ sets defaults, and rejects capacities beyond the limits.
func checkSRQ(a *provider.SRQInitAttr) error {
	a.MaxSGE = max(a.MaxSGE, 1)
	if a.MaxWR < 1 || a.MaxWR > maxSRQWR {
		return fmt.Errorf("%w: max_wr %d of an SRQ; it must be 1 to %d", verbs.ErrInvalid, a.MaxWR, maxSRQWR)
	}
	if a.MaxSGE > ring.MaxSGE {
		return fmt.Errorf("%w: max_sge %d of an SRQ, at most %d", verbs.ErrInvalid, a.MaxSGE, ring.MaxSGE)
	}
	return nil
}

// create carries out provider.CreateSRQ.
func (t *srqs) create(r provider.CreateSRQRequest) (provider.CreateSRQGrant, error) {
	return t.build(r, func(q *srq) error { return nil })
}

// build creates a queue; bind finds the other objects that it refers to, under card.mu.
func (t *srqs) build(r provider.CreateSRQRequest, bind func(*srq) error) (provider.CreateSRQGrant, error) {
	if err := checkSRQ(&r.Attr); err != nil {
		return provider.CreateSRQGrant{}, err
	}
	if err := t.owner.begin(); err != nil {
		return provider.CreateSRQGrant{}, err
	}
	defer t.owner.finish()
	q := &srq{events: eventSource{id: r.EventID, kind: ObjectSRQ}}
	queue, grant, err := t.newQueue(r.Attr.MaxWR, r.Attr.MaxSGE)
	if err != nil {
		return provider.CreateSRQGrant{}, err
	}
	q.memory, q.maxWR, q.maxSGE = [][]byte{grant.Memory}, grant.Attr.MaxWR, grant.Attr.MaxSGE
	q.entry = &datapath.SRQ{Queue: queue, Session: t.owner.entry, NoteLimit: func() { t.owner.events.note(&q.events, notedEvent(verbs.EventSRQLimitReached)) }}
	if grant.SRQ, err = t.link(q, r.PD, bind); err != nil {
		t.owner.release(grant.Memory)
		return provider.CreateSRQGrant{}, err
	}
	return grant, nil
}

// newQueue allocates a queue, and returns a grant without the handle.
func (t *srqs) newQueue(maxWR, maxSGE uint32) (*ring.RecvConsumer, provider.CreateSRQGrant, error) {
	g := ring.RecvGeometry(maxWR, maxSGE)
	memory, err := t.owner.alloc(g.Size())
	if err != nil {
		return nil, provider.CreateSRQGrant{}, err
	}
	queue, err := ring.NewRecvConsumer(memory, g)
	if err != nil {
		t.owner.release(memory)
		return nil, provider.CreateSRQGrant{}, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	return queue, provider.CreateSRQGrant{Attr: verbs.SRQAttr{MaxWR: g.Entries, MaxSGE: g.RecvRoom()}, Memory: memory, Geometry: g}, nil
}

func (t *srqs) link(q *srq, in provider.Handle, bind func(*srq) error) (handle provider.Handle, err error) {
	if err := t.owner.enter(); err != nil {
		return 0, err
	}
	defer t.owner.leave()
	if q.pd, err = t.pds.Get(in); err != nil {
		return 0, err
	}
	if err := bind(q); err != nil {
		return 0, err
	}
	if handle, err = t.Add(q); err != nil {
		return 0, err
	}
	q.handle, q.events.number, q.entry.PD = handle, uint32(handle), q.pd.number
	q.pd.users++
	if q.xrcd != nil {
		t.showXRC(q)
	}
	return handle, nil
}

// modify carries out provider.ModifySRQ.
func (t *srqs) modify(r provider.ModifySRQRequest) (provider.ModifySRQGrant, error) {
	if extra := r.Mask &^ (verbs.SRQMaxWR | verbs.SRQLimit); extra != 0 {
		return provider.ModifySRQGrant{}, fmt.Errorf("%w: unknown attributes 0x%x of an SRQ", verbs.ErrInvalid, uint32(extra))
	}
	if err := t.owner.begin(); err != nil {
		return provider.ModifySRQGrant{}, err
	}
	defer t.owner.finish()
	maxSGE, err := t.checkModify(&r)
	if err != nil {
		return provider.ModifySRQGrant{}, err
	}
	if r.Mask&verbs.SRQMaxWR == 0 {
		return t.change(r, nil, provider.CreateSRQGrant{})
	}
	queue, made, err := t.newQueue(r.Attr.MaxWR, maxSGE)
	if err != nil {
		return provider.ModifySRQGrant{}, err
	}
	grant, err := t.change(r, queue, made)
	if err != nil {
		t.owner.release(made.Memory)
	}
	return grant, err
}

// checkModify checks a request before memory is allocated for it, and returns the maximum number of SGEs in a slot of
// that memory.
func (t *srqs) checkModify(r *provider.ModifySRQRequest) (maxSGE uint32, err error) {
	if err := t.owner.enter(); err != nil {
		return 0, err
	}
	defer t.owner.leave()
	q, err := t.Get(r.SRQ)
	if err != nil {
		return 0, err
	}
	size := provider.SRQInitAttr{MaxWR: q.maxWR, MaxSGE: q.maxSGE}
	if r.Mask&verbs.SRQMaxWR != 0 {
		size.MaxWR = r.Attr.MaxWR
	}
	return q.maxSGE, checkSRQ(&size)
}

// change makes the change between two rounds, completely or not at all. queue is the new queue of a resize.
func (t *srqs) change(r provider.ModifySRQRequest, queue *ring.RecvConsumer, made provider.CreateSRQGrant) (grant provider.ModifySRQGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	q, err := t.Get(r.SRQ)
	if err != nil {
		return grant, err
	}
	before := q.unused // the further request shows that the program does not read these any more
	t.owner.engine().Do(func() { err = q.apply(t.owner.engine(), &r, queue, made.Attr.MaxWR) })
	if err != nil {
		return grant, err
	}
	if queue != nil {
		q.unused = q.unused[len(before):]
		t.owner.release(before...)
		q.memory, q.maxWR = append(q.memory, made.Memory), made.Attr.MaxWR
		grant.Memory, grant.Geometry = made.Memory, made.Geometry
	}
	grant.Attr = q.attr(t.owner.engine())
	return grant, nil
}

// apply changes the engine's part of the SRQ.
func (q *srq) apply(e *datapath.Engine, r *provider.ModifySRQRequest, queue *ring.RecvConsumer, maxWR uint32) error {
	limit := q.entry.Limit()
	if r.Mask&verbs.SRQLimit != 0 {
		limit = r.Attr.Limit
	}
	if queue == nil {
		maxWR = q.maxWR
	}
	if limit > maxWR {
		return fmt.Errorf("%w: limit %d exceeds the %d receives of the SRQ", verbs.ErrInvalid, limit, maxWR)
	}
	if queue != nil {
		if err := q.resize(queue, r.Attr.MaxWR); err != nil {
			return err
		}
	}
	if r.Mask&verbs.SRQLimit != 0 {
		q.entry.SetLimit(limit)
	}
	return nil
}

// resize adds a queue, after those of earlier resizes that still have receives.
func (q *srq) resize(queue *ring.RecvConsumer, asked uint32) error {
	if n := q.entry.Waiting(); n > asked {
		return fmt.Errorf("%w: max_wr %d is less than the %d receives in the SRQ", verbs.ErrInvalid, asked, n)
	}
	if q.trim(); len(q.memory) == maxSRQQueues {
		return fmt.Errorf("%w: the SRQ still has receives from before each of the last %d resizes; resize when messages have consumed some", verbs.ErrBusy, maxSRQQueues-1)
	}
	q.entry.Resize(queue)
	return nil
}

// trim removes queues that are empty and replaced.
func (q *srq) trim() {
	all := q.memory
	q.memory = nil
	for place, left := 0, q.entry.Trim(); place < len(all); place++ {
		if slices.Contains(left, place) {
			q.memory = append(q.memory, all[place])
		} else {
			q.unused = append(q.unused, all[place])
		}
	}
}

// attr returns the attributes of the SRQ. The caller holds card.mu.
func (q *srq) attr(e *datapath.Engine) verbs.SRQAttr {
	attr := verbs.SRQAttr{MaxWR: q.maxWR, MaxSGE: q.maxSGE}
	e.Do(func() { attr.Limit = q.entry.Limit() })
	return attr
}

// query carries out provider.QuerySRQ.
func (t *srqs) query(r provider.QuerySRQRequest) (grant provider.QuerySRQGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	q, err := t.Get(r.SRQ)
	if err != nil {
		return grant, err
	}
	return provider.QuerySRQGrant{Attr: q.attr(t.owner.engine())}, nil
}

// destroy carries out provider.DestroySRQ.
func (t *srqs) destroy(r provider.DestroySRQRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	defer t.owner.leave()
	q, err := t.Get(r.SRQ)
	if err != nil {
		return err
	}
	if q.users > 0 {
		return fmt.Errorf("%w: %d queue pairs receive from the SRQ; close them first", verbs.ErrBusy, q.users)
	}
	t.Remove(r.SRQ)
	q.pd.users--
	if q.xrcd != nil {
		t.hideXRC(q)
	}
	t.owner.events.forget(&q.events)
	t.owner.release(q.memory...)
	t.owner.release(q.unused...)
	return nil
}

// describe describes the object for Session.Objects.
func (q *srq) describe(handle provider.Handle) Object {
	return Object{
		Handle: handle, Number: uint32(q.entry.Number), PD: q.pd.handle, Users: uint32(q.users), Size: q.maxWR, Used: q.entry.Waiting(), Limit: q.entry.Limit(),
	}
}

// releaseAll releases the memory of all queues, at the end of the session.
func (t *srqs) releaseAll() {
	for _, q := range t.All() {
		t.owner.release(q.memory...)
		t.owner.release(q.unused...)
	}
}
