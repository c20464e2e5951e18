//go:build linux

package hca

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/provider"
)

// ObjectKind is what Session.Objects lists.
type ObjectKind int

// The kinds. Attachments are of queue pairs to groups.
const (
	ObjectPD ObjectKind = iota
	ObjectCQ
	ObjectQP
	ObjectSRQ
	ObjectMR
	ObjectAH
	ObjectAttachment
	ObjectMembership
)

// Object is an object of a session, as commands that look show it. What a kind does not have is 0.
type Object struct {
	Handle          provider.Handle // of an attachment the queue pair's
	Number          uint32          // a QP's, also of an attachment; of an MR the lkey, of an SRQ of type XRC its number
	Type            verbs.QPType
	State           verbs.QPState
	Failed          bool // a CQ that was overrun; an AH whose destination cannot be reached now
	Full            bool // a membership that is not send-only
	PD, SRQ         provider.Handle
	SendCQ, RecvCQ  provider.Handle
	Users           uint32 // objects that refer to it; of a QP the groups that it is attached to
	Size, Used      uint32 // entries of a CQ or an SRQ, or of a QP to send, and how many are taken
	RecvSize        uint32 // of a QP without SRQ: the receives that it has room for
	RecvUsed        uint32 // and those that are posted
	Limit           uint32 // of an SRQ, as it is armed
	QKey            wire.QKey
	PSN             wire.PSN
	PeerQPN         wire.QPN // of a connected QP that knows its peer
	MLID            wire.MLID
	Access          verbs.AccessFlags
	Address, Length uint64   // of an MR
	Source, Dest    wire.GID // of an AH, and of a connected QP; of an attachment and a membership the group
}

// Cursor is a place in a session's list of objects. The zero Cursor is its beginning.
type Cursor struct{ Place, Index uint32 }

// Objects lists objects of a kind, at most so many, from a place on; next is where to go on, if there
// is more. It holds the card for as long as one page takes. Objects that come or go between two pages
// are listed or not.
func (s *Session) Objects(kind ObjectKind, from Cursor, most int) (list []Object, next Cursor, more bool, err error) {
	if err := s.enter(); err != nil {
		return nil, from, false, err
	}
	defer s.card.mu.Unlock()
	p := &page{list: make([]Object, 0, most), next: from}
	switch kind {
	case ObjectPD:
		more = fill(p, &s.pds, p.pd)
	case ObjectCQ:
		s.entry.Engine().Do(func() { more = fill(p, &s.cqs, p.cq) })
	case ObjectQP:
		s.entry.Engine().Do(func() { more = fill(p, &s.qps, p.qp) })
	case ObjectSRQ:
		s.entry.Engine().Do(func() { more = fill(p, &s.srqs, p.srq) })
	case ObjectMR:
		more = fill(p, &s.keys, p.mr)
	case ObjectAH:
		more = fill(p, &s.ahs, p.ah)
	case ObjectAttachment:
		more = fill(p, &s.qps, p.attachments)
	case ObjectMembership:
		more = fill(p, &s.joins, p.membership)
	default:
		err = fmt.Errorf("%w: no kind %d of objects", verbs.ErrInvalid, kind)
	}
	return p.list, p.next, more, err
}

// page is a part of a list.
type page struct {
	list []Object
	next Cursor
}

func (p *page) full() bool { return len(p.list) == cap(p.list) }

// fill adds the objects of a table until the page is full; more says that it was not the last.
func fill[T any](p *page, t *handles.Table[T], add func(provider.Handle, *T) (more bool)) (more bool) {
	for handle, object := range t.From(p.next.Place) {
		if place := handles.Place(handle); place != p.next.Place {
			p.next = Cursor{Place: place}
		}
		if p.full() || add(handle, object) {
			return true
		}
		p.next = Cursor{Place: p.next.Place + 1}
	}
	return false
}

// put adds an object that is one of the page's.
func (p *page) put(o Object) (more bool) {
	p.list = append(p.list, o)
	return false
}

func (p *page) pd(handle provider.Handle, d *pd) bool {
	return p.put(Object{Handle: handle, Users: uint32(d.users)})
}

func (p *page) cq(handle provider.Handle, c *cq) bool {
	return p.put(Object{
		Handle: handle, Users: uint32(c.users), Size: c.entry.Queue.Entries(), Used: c.entry.Queue.Unread(), Failed: c.entry.Overrun(),
	})
}

func (p *page) qp(handle provider.Handle, q *qp) bool {
	e := q.entry
	o := Object{
		Handle: handle, Number: uint32(e.Number), Type: q.kind, State: e.State, QKey: e.QKey, PSN: e.PSN(), Users: uint32(len(q.groups)),
	}
	if q.target == nil {
		o.PD, o.SendCQ, o.RecvCQ, o.Size, o.Used = q.pd.handle, q.sendCQ.handle, q.recvCQ.handle, e.Send.Entries(), e.Send.Waiting()
	}
	if q.peer != nil {
		o.PeerQPN, o.Source, o.Dest = q.connection.PeerQPN, q.peer.source, q.connection.Peer
	}
	switch {
	case q.srq != nil:
		o.SRQ = q.srq.handle
	case q.kind != verbs.QPTypeXRCSend && q.target == nil:
		o.RecvSize, o.RecvUsed = e.Recv.Entries(), e.Recv.Waiting()
	}
	return p.put(o)
}

func (p *page) srq(handle provider.Handle, q *srq) bool {
	return p.put(Object{
		Handle: handle, Number: uint32(q.entry.Number), PD: q.pd.handle, Users: uint32(q.users), Size: q.maxWR, Used: q.entry.Waiting(), Limit: q.entry.Limit(),
	})
}

func (p *page) mr(handle provider.Handle, k *keyed) bool {
	m := k.region
	if m == nil {
		return false
	}
	length := uint64(len(m.memory))
	if m.fast { // that is its list
		length = 0
	}
	return p.put(Object{
		Handle: handle, Number: uint32(m.key), PD: m.pd.handle,
		Address: m.iova, Length: length, Access: m.access,
	})
}

func (p *page) ah(handle provider.Handle, a *ah) bool {
	return p.put(Object{
		Handle: handle, PD: a.pd.handle, Source: a.source, Dest: a.attr.GRH.DGID, Failed: a.path.Err() != nil,
	})
}

// attachments adds those of a queue pair, of which there may be more than a page has room for.
func (p *page) attachments(handle provider.Handle, q *qp) (more bool) {
	groups := slices.SortedFunc(maps.Keys(q.groups), func(a, b wire.GID) int { return bytes.Compare(a[:], b[:]) })
	for int(p.next.Index) < len(groups) {
		if p.full() {
			return true
		}
		group := groups[p.next.Index]
		p.put(Object{Handle: handle, Number: uint32(q.entry.Number), Dest: group, MLID: q.groups[group]})
		p.next.Index++
	}
	return false
}

func (p *page) membership(handle provider.Handle, m *joined) bool {
	mgid, _ := mcast.MGID(m.group) // it was joined
	return p.put(Object{Handle: handle, Dest: mgid, Full: m.full})
}

// Used is what the session has.
func (s *Session) Used() (used Limits) {
	usedIDs, usedChannels := s.cm.Used()
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	return Limits{
		PDs: s.pds.Len(), MRs: s.keys.Len(), CQs: s.cqs.Len(), QPs: s.qps.Len(), AHs: s.ahs.Len(), SRQs: s.srqs.Len(), XRCDs: s.xrcds.Len(),
		CompChannels: s.channels.Len(), Memberships: s.joins.Len(), Attachments: s.attached, IDs: usedIDs, EventChannels: usedChannels, Memory: s.memory.Load(),
	}
}
