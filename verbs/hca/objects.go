//go:build linux

package hca

import (
	"github.com/roced/roced/datapath/wire"
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

// page is a part of a list.
type page struct {
	list []Object
	next Cursor
}

func (p *page) full() bool { return len(p.list) == cap(p.list) }

// fill adds the objects of a table until the page is full; more reports that it was not the last.
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

// put adds an object that is one entry of the page.
func (p *page) put(o Object) (more bool) {
	p.list = append(p.list, o)
	return false
}

// each returns the function that adds an object by its description, for fill.
func each[T any](p *page, describe func(*T, provider.Handle) Object) func(provider.Handle, *T) (more bool) {
	return func(handle provider.Handle, object *T) bool { return p.put(describe(object, handle)) }
}

// ObjectEvent is something that has happened to an object.
type ObjectEvent struct {
	Kind   ObjectKind
	Number uint32 // a QP's; the handle of a CQ or an SRQ
	Type   verbs.EventType
	Moved  bool // the card has moved the queue pair to State; there is no Type
	State  verbs.QPState
}
