//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Shared receive queues of type XRC: those of a domain, which peers name by their numbers.

// CreateXRCSRQ implements provider.Provider.
func (s sharedQueues) CreateXRCSRQ(r provider.CreateXRCSRQRequest) (grant provider.CreateXRCSRQGrant, err error) {
	basic := provider.CreateSRQRequest{PD: r.PD, Attr: r.Attr, EventID: r.EventID}
	grant.CreateSRQGrant, err = s.createSRQ(basic, func(q *srq) error {
		err := s.bindXRC(q, &r)
		grant.Number = q.entry.Number
		return err
	})
	if err != nil {
		return provider.CreateXRCSRQGrant{}, err
	}
	return grant, nil
}

// bindXRC finds the domain and the CQ of a queue, and gives it its number. The caller holds card.mu.
func (s sharedQueues) bindXRC(q *srq, r *provider.CreateXRCSRQRequest) (err error) {
	if q.xrcd, err = s.xrcds.get(r.XRCD); err != nil {
		return err
	}
	if q.cq, err = s.cqs.get(r.CQ); err != nil {
		return err
	}
	overrun := false
	s.card.engine.Do(func() { overrun = q.cq.entry.Overrun() })
	if overrun {
		return fmt.Errorf("%w: the CQ of the SRQ, so its receives complete nothing any more; make another CQ", verbs.ErrCQOverrun)
	}
	card := s.card
	all := len(card.srqsByPlace)
	if all == maxSRQ {
		return fmt.Errorf("%w: the sessions of this card have %d SRQs of type XRC together; destroy some", verbs.ErrLimit, maxSRQ)
	}
	if err := s.config.Quota.admit(limitSRQs, shared{"SRQs of type XRC of the card", uint64(all), maxSRQ}); err != nil {
		return err
	}
	q.entry.Number = wire.SRQN(card.srqNumbers.take(func(place wire.QPN) bool { return card.srqsByPlace[place] == nil }))
	q.entry.CQ, q.entry.CompletionToken = q.cq.entry, r.CompletionToken
	return nil
}

// showXRC lets peers of the domain's targets name a queue. The caller holds card.mu.
func (s sharedQueues) showXRC(q *srq) {
	s.card.srqsByPlace[q.place()] = q
	q.xrcd.users++
	q.cq.users++
	s.card.engine.Do(func() { q.xrcd.domain.entry.AddSRQ(q.entry) })
}

// hideXRC ends that.
func (s sharedQueues) hideXRC(q *srq) {
	s.card.engine.Do(func() { q.xrcd.domain.entry.RemoveSRQ(q.entry) })
	delete(s.card.srqsByPlace, q.place())
	q.xrcd.users--
	q.cq.users--
}

func (q *srq) place() wire.QPN { return wire.QPN(q.entry.Number) % numberPlaces }
