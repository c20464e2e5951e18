package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// ModifyQP implements verbs.Provider.
func (s *Session) ModifyQP(r verbs.ModifyQPRequest) (grant verbs.ModifyQPGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	q, err := s.qps.get(r.QP)
	if err != nil {
		return grant, err
	}
	current := verbs.QPState(q.state.Load())
	next := current
	if r.Mask&verbs.QPAttrState != 0 {
		next = r.Attr.State
	}
	if err := s.checkModify(q.kind, current, next, &r.Attr, r.Mask); err != nil {
		return grant, err
	}
	s.card.engine.Do(func() { err = q.apply(s.card.engine, current, next, &r.Attr, r.Mask, r.CompletionToken) })
	if err != nil {
		return grant, err
	}
	if r.Mask&verbs.QPAttrEnSQDAsyncNotify != 0 && r.Attr.EnSQDAsyncNotify {
		// The card carries out a request in one go, so the queue has drained: what was taken from it
		// is sent and completed, and nothing else will be.
		s.events.put(verbs.EventReport{Type: verbs.EventSQDrained, EventID: q.eventID})
	}
	return verbs.ModifyQPGrant{Attr: s.attrOf(q)}, nil
}

// checkModify checks a request before anything is changed.
func (s *Session) checkModify(kind verbs.QPType, current, next verbs.QPState, attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	if err := verbs.CheckModifyQP(current, next, kind, mask, verbs.LinkLayerEthernet); err != nil {
		return err
	}
	switch {
	case mask&verbs.QPAttrCurState != 0 && attr.CurState != current:
		return fmt.Errorf("%w: the queue pair is in %v, not in %v", verbs.ErrState, current, attr.CurState)
	case mask&verbs.QPAttrPort != 0 && attr.Port != 1:
		return fmt.Errorf("%w: port %d; the device has port 1", verbs.ErrInvalid, attr.Port)
	case mask&verbs.QPAttrPKeyIndex != 0 && attr.PKeyIndex != 0:
		return fmt.Errorf("%w: P_Key index %d; the table has index 0", verbs.ErrInvalid, attr.PKeyIndex)
	case mask&verbs.QPAttrSQPSN != 0 && attr.SQPSN > wire.PSNMask:
		return fmt.Errorf("%w: SQ PSN 0x%x has more than 24 bits", verbs.ErrInvalid, uint32(attr.SQPSN))
	case mask&verbs.QPAttrQKey != 0 && kind == verbs.QPTypeGSI && attr.QKey != wire.QKeyGSI:
		return fmt.Errorf("%w: Q_Key %v; that of QP 1 is %v and cannot be changed", verbs.ErrInvalid, attr.QKey, wire.QKeyGSI)
	case mask&verbs.QPAttrQKey != 0 && attr.QKey&wire.QKeyPrivileged != 0 && !s.mayPrivileged():
		return fmt.Errorf("%w: Q_Key %v has the high bit set, which needs %s", verbs.ErrPermission, attr.QKey, s.privilege())
	}
	return nil
}

// apply makes the change, between two bursts. The engine may have changed the queue pair's state
// since the request was checked.
func (q *qp) apply(e *datapath.Engine, current, next verbs.QPState, attr *verbs.QPAttr, mask verbs.QPAttrMask, token uint32) error {
	if now := verbs.QPState(q.state.Load()); now != current {
		return fmt.Errorf("%w: the queue pair went to %v by itself; query it, and try again", verbs.ErrState, now)
	}
	if current == verbs.QPStateReset && next == verbs.QPStateInit {
		if err := q.checkCQs(); err != nil { // an overrun from now on finds it in INIT, and fails it
			return err
		}
	}
	if mask&verbs.QPAttrQKey != 0 {
		q.entry.QKey, q.attr.QKey = attr.QKey, attr.QKey
	}
	if mask&verbs.QPAttrPort != 0 {
		q.attr.Port = attr.Port
	}
	if mask&verbs.QPAttrSQPSN != 0 {
		q.entry.PSN, q.attr.SQPSN = attr.SQPSN, attr.SQPSN
	}
	if mask&verbs.QPAttrEnSQDAsyncNotify != 0 {
		q.attr.EnSQDAsyncNotify = attr.EnSQDAsyncNotify
	}
	if mask&verbs.QPAttrState != 0 {
		if next == verbs.QPStateReset {
			q.clearAttr()
			q.entry.CompletionToken = token
		}
		q.state.Store(uint32(next))
		e.SetState(q.entry, next)
	}
	return nil
}

// QueryQP implements verbs.Provider.
func (s *Session) QueryQP(r verbs.QueryQPRequest) (grant verbs.QueryQPGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	q, err := s.qps.get(r.QP)
	if err != nil {
		return grant, err
	}
	grant.Attr = s.attrOf(q)
	return grant, nil
}

// clearAttr sets the attributes to those of RESET. The GSI queue pair has its port and its Q_Key from
// the beginning.
func (q *qp) clearAttr() {
	q.attr, q.entry.QKey, q.entry.PSN = verbs.QPAttr{}, 0, 0
	if q.kind == verbs.QPTypeGSI {
		q.attr.Port, q.attr.QKey, q.entry.QKey = 1, wire.QKeyGSI, wire.QKeyGSI
	}
}

// attrOf are the attributes now. The caller holds card.mu.
func (s *Session) attrOf(q *qp) (attr verbs.QPAttr) {
	s.card.engine.Do(func() {
		attr = q.attr
		attr.SQPSN = q.entry.PSN
		attr.State = verbs.QPState(q.state.Load())
		attr.CurState = attr.State
	})
	return attr
}
