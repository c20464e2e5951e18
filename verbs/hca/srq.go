//go:build linux

package hca

import (
	"fmt"
	"slices"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// srq is a shared receive queue, with the number of queue pairs that take from it.
type srq struct {
	handle provider.Handle
	entry  *datapath.SRQ // the engine's part of it
	pd     *pd
	memory [][]byte // of its queues; the last is the one that the program posts to
	unused [][]byte // of queues that were found empty by the last resize: the program may still look
	maxWR  uint32
	maxSGE uint32
	users  int
	events eventSource
	xrcd   *xrcd // of one of type XRC, like cq; else nil
	cq     *cq
}

// checkSRQ fills in defaults, and refuses what is beyond the limits.
func checkSRQ(a *provider.SRQInitAttr) error {
	a.MaxSGE = max(a.MaxSGE, 1)
	if a.MaxWR < 1 || a.MaxWR > maxSRQWR {
		return fmt.Errorf("%w: max_wr %d of an SRQ; 1 to %d", verbs.ErrInvalid, a.MaxWR, maxSRQWR)
	}
	if a.MaxSGE > ring.MaxSGE {
		return fmt.Errorf("%w: max_sge %d of an SRQ, at most %d", verbs.ErrInvalid, a.MaxSGE, ring.MaxSGE)
	}
	return nil
}

// createSRQ carries out provider.CreateSRQ.
func createSRQ(s *Session, r provider.CreateSRQRequest) (provider.CreateSRQGrant, error) {
	return makeSRQ(s, r, func(q *srq) error { return nil })
}

// makeSRQ makes a queue; bind finds what else it refers to, under card.mu.
func makeSRQ(s *Session, r provider.CreateSRQRequest, bind func(*srq) error) (provider.CreateSRQGrant, error) {
	if err := checkSRQ(&r.Attr); err != nil {
		return provider.CreateSRQGrant{}, err
	}
	if err := s.begin(); err != nil {
		return provider.CreateSRQGrant{}, err
	}
	defer s.life.work.Done()
	q := &srq{events: eventSource{id: r.EventID, kind: ObjectSRQ}}
	queue, grant, err := makeSharedQueue(s, r.Attr.MaxWR, r.Attr.MaxSGE)
	if err != nil {
		return provider.CreateSRQGrant{}, err
	}
	q.memory, q.maxWR, q.maxSGE = [][]byte{grant.Memory}, grant.Attr.MaxWR, grant.Attr.MaxSGE
	q.entry = &datapath.SRQ{Queue: queue, Session: s.entry, NoteLimit: func() { s.note(&q.events, notedEvent(verbs.EventSRQLimitReached)) }}
	if grant.SRQ, err = addSRQ(s, q, r.PD, bind); err != nil {
		s.release(grant.Memory)
		return provider.CreateSRQGrant{}, err
	}
	return grant, nil
}

// makeSharedQueue allocates a queue, and makes a grant that has all except the handle.
func makeSharedQueue(s *Session, maxWR, maxSGE uint32) (*ring.RecvConsumer, provider.CreateSRQGrant, error) {
	g := ring.RecvGeometry(maxWR, maxSGE)
	memory, err := s.alloc(g.Size())
	if err != nil {
		return nil, provider.CreateSRQGrant{}, err
	}
	queue, err := ring.NewRecvConsumer(memory, g)
	if err != nil {
		s.release(memory)
		return nil, provider.CreateSRQGrant{}, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	return queue, provider.CreateSRQGrant{Attr: verbs.SRQAttr{MaxWR: g.Entries, MaxSGE: g.RecvRoom()}, Memory: memory, Geometry: g}, nil
}

func addSRQ(s *Session, q *srq, in provider.Handle, bind func(*srq) error) (handle provider.Handle, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.card.mu.Unlock()
	if q.pd, err = s.pds.Get(in); err != nil {
		return 0, err
	}
	if err := bind(q); err != nil {
		return 0, err
	}
	if handle, err = s.srqs.Add(q); err != nil {
		return 0, err
	}
	q.handle, q.events.number, q.entry.PD = handle, uint32(handle), q.pd.number
	q.pd.users++
	if q.xrcd != nil {
		q.showXRC(s)
	}
	return handle, nil
}

// modifySRQ carries out provider.ModifySRQ.
func modifySRQ(s *Session, r provider.ModifySRQRequest) (provider.ModifySRQGrant, error) {
	if extra := r.Mask &^ (verbs.SRQMaxWR | verbs.SRQLimit); extra != 0 {
		return provider.ModifySRQGrant{}, fmt.Errorf("%w: an SRQ has no attribute 0x%x", verbs.ErrInvalid, uint32(extra))
	}
	if err := s.begin(); err != nil {
		return provider.ModifySRQGrant{}, err
	}
	defer s.life.work.Done()
	maxSGE, err := checkModifySRQ(s, &r)
	if err != nil {
		return provider.ModifySRQGrant{}, err
	}
	if r.Mask&verbs.SRQMaxWR == 0 {
		return changeSRQ(s, r, nil, provider.CreateSRQGrant{})
	}
	queue, made, err := makeSharedQueue(s, r.Attr.MaxWR, maxSGE)
	if err != nil {
		return provider.ModifySRQGrant{}, err
	}
	grant, err := changeSRQ(s, r, queue, made)
	if err != nil {
		s.release(made.Memory)
	}
	return grant, err
}

// checkModifySRQ checks a request before memory is allocated for it, and returns the maximum of SGEs in a slot of that
// memory.
func checkModifySRQ(s *Session, r *provider.ModifySRQRequest) (maxSGE uint32, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.card.mu.Unlock()
	q, err := s.srqs.Get(r.SRQ)
	if err != nil {
		return 0, err
	}
	size := provider.SRQInitAttr{MaxWR: q.maxWR, MaxSGE: q.maxSGE}
	if r.Mask&verbs.SRQMaxWR != 0 {
		size.MaxWR = r.Attr.MaxWR
	}
	return q.maxSGE, checkSRQ(&size)
}

// changeSRQ makes the change, between two rounds: all of it or nothing. queue is the new one of a
// resize.
func changeSRQ(s *Session, r provider.ModifySRQRequest, queue *ring.RecvConsumer, made provider.CreateSRQGrant) (grant provider.ModifySRQGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	q, err := s.srqs.Get(r.SRQ)
	if err != nil {
		return grant, err
	}
	before := q.unused // the program does not read these any more: a further request says so
	s.entry.Engine().Do(func() { err = q.apply(s.entry.Engine(), &r, queue, made.Attr.MaxWR) })
	if err != nil {
		return grant, err
	}
	if queue != nil {
		q.unused = q.unused[len(before):]
		s.release(before...)
		q.memory, q.maxWR = append(q.memory, made.Memory), made.Attr.MaxWR
		grant.Memory, grant.Geometry = made.Memory, made.Geometry
	}
	grant.Attr = q.attr(s)
	return grant, nil
}

// apply changes the engine's part.
func (q *srq) apply(e *datapath.Engine, r *provider.ModifySRQRequest, queue *ring.RecvConsumer, maxWR uint32) error {
	limit := q.entry.Limit()
	if r.Mask&verbs.SRQLimit != 0 {
		limit = r.Attr.Limit
	}
	if queue == nil {
		maxWR = q.maxWR
	}
	if limit > maxWR {
		return fmt.Errorf("%w: a limit of %d in an SRQ of %d receives", verbs.ErrInvalid, limit, maxWR)
	}
	if queue != nil {
		if err := q.resize(queue, r.Attr.MaxWR); err != nil {
			return err
		}
	}
	if r.Mask&verbs.SRQLimit != 0 {
		e.SetLimit(q.entry, limit)
	}
	return nil
}

// resize adds a queue, behind those of earlier resizes that have receives left.
func (q *srq) resize(queue *ring.RecvConsumer, asked uint32) error {
	if n := q.entry.Waiting(); n > asked {
		return fmt.Errorf("%w: max_wr %d is less than the %d receives that wait in the SRQ", verbs.ErrInvalid, asked, n)
	}
	if q.trim(); len(q.memory) == maxSRQQueues {
		return fmt.Errorf("%w: receives from before each of the last %d resizes still wait; resize when messages have taken some", verbs.ErrBusy, maxSRQQueues-1)
	}
	q.entry.Resize(queue)
	return nil
}

// trim forgets queues that are empty and replaced.
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
func (q *srq) attr(s *Session) verbs.SRQAttr {
	attr := verbs.SRQAttr{MaxWR: q.maxWR, MaxSGE: q.maxSGE}
	s.entry.Engine().Do(func() { attr.Limit = q.entry.Limit() })
	return attr
}

// querySRQ carries out provider.QuerySRQ.
func querySRQ(s *Session, r provider.QuerySRQRequest) (grant provider.QuerySRQGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	q, err := s.srqs.Get(r.SRQ)
	if err != nil {
		return grant, err
	}
	return provider.QuerySRQGrant{Attr: q.attr(s)}, nil
}

// destroySRQ carries out provider.DestroySRQ.
func destroySRQ(s *Session, r provider.DestroySRQRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	q, err := s.srqs.Get(r.SRQ)
	if err != nil {
		return err
	}
	if q.users > 0 {
		return fmt.Errorf("%w: %d queue pairs take receives from the SRQ; close them first", verbs.ErrBusy, q.users)
	}
	s.srqs.Remove(r.SRQ)
	q.pd.users--
	if q.xrcd != nil {
		q.hideXRC(s)
	}
	s.events.forget(&q.events)
	s.release(q.memory...)
	s.release(q.unused...)
	return nil
}
