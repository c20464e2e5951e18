// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/provider"
)

// ObjectKind is a kind of objects that Session.Objects lists.
type ObjectKind int

// The kinds. An attachment is one of a queue pair to a group.
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

// Object describes an object of a session. Fields that its kind does not have are 0.
type Object struct {
	Handle          provider.Handle // for an attachment: the queue pair's
	Number          uint32          // QP number, also for an attachment; lkey of an MR; number of an XRC SRQ
	Type            verbs.QPType
	State           verbs.QPState
	Failed          bool // a CQ has overrun; the destination of an AH is unreachable
	Full            bool // a membership is not send-only
	PD, SRQ         provider.Handle
	SendCQ, RecvCQ  provider.Handle
	Users           uint32 // number of objects that refer to it; for a QP, of groups that it is attached to
	Size, Used      uint32 // entries of a CQ, an SRQ or a QP's send queue, and the number in use
	RecvSize        uint32 // entries of the receive queue of a QP without SRQ
	RecvUsed        uint32 // number of receives posted to it
	Limit           uint32 // limit at which an SRQ is armed
	QKey            wire.QKey
	PSN             wire.PSN
	PeerQPN         wire.QPN // for a connected QP with a peer
	MLID            wire.MLID
	Access          verbs.AccessFlags
	Address, Length uint64   // of an MR
	Source, Dest    wire.GID // for an AH and a connected QP; Dest of an attachment and a membership is the group
}

// Cursor is a position in a session's list of objects. The zero Cursor is its beginning.
type Cursor struct{ Place, Index uint32 }

// page is part of a list.
type page struct {
	list []Object
	next Cursor
}

func (p *page) full() bool { return len(p.list) == cap(p.list) }

// fill adds the objects of a table until the page is full; it returns true if objects remain.
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

// put adds an object that is a single entry of the page.
func (p *page) put(o Object) (more bool) {
	p.list = append(p.list, o)
	return false
}

// each returns a function for fill that adds an object by its description.
func each[T any](p *page, describe func(*T, provider.Handle) Object) func(provider.Handle, *T) (more bool) {
	return func(handle provider.Handle, object *T) bool { return p.put(describe(object, handle)) }
}

// ObjectEvent is an event of an object.
type ObjectEvent struct {
	Kind   ObjectKind
	Number uint32 // QP number, or handle of a CQ or an SRQ
	Type   verbs.EventType
	Moved  bool // the card has moved the queue pair to State; Type is unset
	State  verbs.QPState
}
