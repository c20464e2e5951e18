// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// Session is one program's use of a card, with its own objects and handles, doorbell, events, limits and privileges. It
// is a provider.Provider. Sessions do not affect each other; closing one frees only its own objects.
type Session struct {
	owner
	card           *Card
	doorbell       *ring.Doorbell
	doorbellMemory []byte
	claimed        atomic.Bool // by a Context

	pds         pds
	channels    channels
	cqs         cqs
	mrs         mrs
	dms         dms
	counters    counterSets
	srqs        srqs
	xrcds       xrcds
	qps         qps
	targets     targets
	attachments attachments
	ahs         ahs
	memberships memberships
	ids         *ids.Session
}

// maxSessions is the maximum number of sessions of a card.
const maxSessions = 4096

// makeTables creates the empty tables of the session's objects.
func (s *Session) makeTables() {
	o, card := &s.owner, s.card
	s.pds = pds{Table: newTable[pd](o, "PD", quota.PDs), owner: o}
	s.channels = channels{Table: newTable[compChannel](o, "completion channel", quota.CompChannels), owner: o}
	s.channels.Gone = handles.ErrChannelGone
	s.cqs = cqs{Table: newTable[cq](o, "CQ", quota.CQs), owner: o, channels: &s.channels}
	s.dms = dms{Table: newTable[dm](o, "DM", quota.MRs), owner: o}
	s.mrs = mrs{Table: newTable[keyed](o, "MR", quota.MRs), owner: o, pds: &s.pds, dms: &s.dms}
	s.xrcds = xrcds{Table: newTable[xrcd](o, "XRC domain", quota.XRCDs), owner: o, domains: &card.domains}
	s.srqs = srqs{Table: newTable[srq](o, "SRQ", quota.SRQs), owner: o, pds: &s.pds, cqs: &s.cqs, xrcds: &s.xrcds, numbers: card.srqs}
	s.qps = qps{
		Table: newTable[qp](o, "QP", quota.QPs), owner: o, pds: &s.pds, cqs: &s.cqs, srqs: &s.srqs,
		numbers: card.qps, byDoorbell: map[uint32]*qp{},
	}
	s.targets = targets{qps: &s.qps, xrcds: &s.xrcds}
	s.attachments = attachments{owner: o, qps: &s.qps, groups: &card.groups}
	s.ahs = ahs{Table: newTable[ah](o, "AH", quota.AHs), owner: o, pds: &s.pds}
	s.counters = counterSets{Table: newTable[counters](o, "counters object", quota.MRs), owner: o, cqs: &s.cqs, qps: &s.qps}
	s.memberships = memberships{Table: newTable[joined](o, "membership", quota.Memberships), owner: o}
	s.ids = card.manager.NewSession(ids.SessionConfig{
		Program: s, Groups: &s.memberships, Limits: s.config.Limits, Quota: s.config.Quota,
		MayBindService: s.config.mayBindService, BindPrivilege: s.config.bindPrivilege(), Block: s.config.Block,
	})
}

// newTable returns the table for the objects of one kind.
func newTable[T any](o *owner, noun string, kind quota.Kind) handles.Table[T] {
	return handles.NewTable[T](noun, kind, o.config.Limits, o.config.Quota)
}

// Claim implements provider.Provider.
func (s *Session) Claim() error {
	if s.claimed.Swap(true) {
		return fmt.Errorf("%w: this session on %s has a Context already; Card.NewSession creates another session", verbs.ErrBusy, s.card.Name())
	}
	return nil
}

// Doorbell implements provider.Provider.
func (s *Session) Doorbell() *ring.Doorbell { return s.doorbell }

// DoorbellMemory returns the memory of the doorbell, from SessionConfig.Memory.
func (s *Session) DoorbellMemory() []byte { return s.doorbellMemory }

// OpenEvents returns a queue for the events of objects with EventIDs from first, which is not 0, to last. Other queues
// do not receive these events; every queue receives those of the device and its port. GetAsyncEvent returns the events
// of objects with other EventIDs. The error is ErrBusy if another queue has one of the EventIDs.
func (s *Session) OpenEvents(first, last uint64) (*EventQueue, error) {
	return s.events.open(first, last)
}

// GetAsyncEvent implements provider.Provider.
func (s *Session) GetAsyncEvent(ctx context.Context) (r provider.EventReport, err error) {
	err = s.events.rest.Pass(ctx, func(oldest provider.EventReport) bool {
		r = oldest
		return true
	})
	return r, err
}

// ReportNoticed calls SessionConfig.Observe for the events since SessionConfig.Noticed was called.
func (s *Session) ReportNoticed() { s.events.reportNoted() }

// Wake implements provider.Provider. With inline progress, the caller's thread does the work.
func (s *Session) Wake() {
	if s.device.inline {
		s.engine().Kick(s.entry)
	} else {
		s.engine().Wake(s.entry)
	}
}

// Progress implements provider.Progressor.
func (s *Session) Progress() bool { return s.device.inline && s.engine().Progress() }

// BeginWait implements provider.Progressor.
func (s *Session) BeginWait() { s.engine().BeginWait() }

// EndWait implements provider.Progressor.
func (s *Session) EndWait() { s.engine().EndWait() }

// NoteReady implements provider.Progressor.
func (s *Session) NoteReady() {
	if s.device.inline {
		s.engine().NoteReady()
	}
}

// Lead implements provider.Leader.
func (s *Session) Lead(ctx context.Context, events, closed <-chan struct{}) (over bool) {
	return s.device.inline && s.engine().Lead(datapath.Waiter{Context: ctx, Events: events, Closed: closed, Done: s.life.done})
}

// WakeLeader implements provider.Leader.
func (s *Session) WakeLeader() { s.engine().WakeLeader() }

// Counters implements provider.CounterReader: it returns Card.Statistics as a list with names.
func (s *Session) Counters() ([]Counter, error) {
	statistics, err := s.card.Statistics()
	if err != nil {
		return nil, err
	}
	return statistics.All(), nil
}

// RegMapped registers the program's own memory, of the length in the request. It checks the request, then calls mapped,
// which maps the memory. The grant has no memory, since the program has it. Errors: those of AllocMR and those of
// mapped.
func (s *Session) RegMapped(r provider.AllocMRRequest, mapped func() (Mapping, error)) (provider.MRGrant, error) {
	return s.mrs.regMapped(r, mapped)
}

// ReregMapped is ReregMR with ReregChangeTranslation to the program's own memory, of a length in bytes, which mapped
// maps. After an error the region is unchanged.
func (s *Session) ReregMapped(r provider.ReregMRRequest, length int, mapped func() (Mapping, error)) error {
	return s.mrs.reregMapped(r, length, mapped)
}

// Objects lists up to most objects of a kind, from a position on. If more is true, the list continues at next. It locks
// the card for one page at a time. Objects that are created or destroyed between two pages may be listed or not.
func (s *Session) Objects(kind ObjectKind, from Cursor, most int) (list []Object, next Cursor, more bool, err error) {
	if err := s.enter(); err != nil {
		return nil, from, false, err
	}
	defer s.leave()
	p := &page{list: make([]Object, 0, most), next: from}
	switch kind {
	case ObjectPD:
		more = fill(p, &s.pds.Table, each(p, (*pd).describe))
	case ObjectCQ:
		s.engine().Do(func() { more = fill(p, &s.cqs.Table, each(p, (*cq).describe)) })
	case ObjectQP:
		s.engine().Do(func() { more = fill(p, &s.qps.Table, each(p, (*qp).describe)) })
	case ObjectSRQ:
		s.engine().Do(func() { more = fill(p, &s.srqs.Table, each(p, (*srq).describe)) })
	case ObjectMR:
		more = fill(p, &s.mrs.Table, func(handle provider.Handle, k *keyed) bool {
			return k.region != nil && p.put(k.region.describe(handle))
		})
	case ObjectAH:
		more = fill(p, &s.ahs.Table, each(p, (*ah).describe))
	case ObjectAttachment:
		more = fill(p, &s.qps.Table, func(handle provider.Handle, q *qp) bool { return q.attachments(p, handle) })
	case ObjectMembership:
		more = fill(p, &s.memberships.Table, each(p, (*joined).describe))
	default:
		err = fmt.Errorf("%w: unknown kind of objects %d", verbs.ErrInvalid, kind)
	}
	return p.list, p.next, more, err
}

// IDInfo describes a connection id, for commands of the service.
type IDInfo = ids.Info

// IDs lists up to most connection ids, like Objects.
func (s *Session) IDs(from Cursor, most int) (list []IDInfo, next Cursor, more bool, err error) {
	list, next.Place, more, err = s.ids.List(from.Place, most)
	return list, next, more, err
}

// Used returns the current numbers of the session's objects.
func (s *Session) Used() (used Limits) {
	usedIDs, usedChannels := s.ids.Used()
	s.device.mu.Lock()
	defer s.leave()
	return Limits{
		PDs: s.pds.Len(), MRs: s.mrs.Len(), CQs: s.cqs.Len(), QPs: s.qps.Len(), AHs: s.ahs.Len(), SRQs: s.srqs.Len(), XRCDs: s.xrcds.Len(),
		CompChannels: s.channels.Len(), Memberships: s.memberships.Len(), Attachments: s.attachments.used,
		IDs: usedIDs, EventChannels: usedChannels, Memory: s.memory.Load(),
	}
}
