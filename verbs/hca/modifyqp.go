//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// modifyQP carries out provider.ModifyQP. A new peer's path is made ready aside, as for an address handle,
// and the queue pair has it with the other attributes.
func modifyQP(s *Session, r provider.ModifyQPRequest) (grant provider.ModifyQPGrant, err error) {
	if err := s.begin(); err != nil {
		return grant, err
	}
	defer s.life.work.Done()
	var peer *ah
	if r.Mask&verbs.QPAttrAV != 0 {
		if peer, err = preparePeer(s, &r); err != nil {
			return grant, err
		}
	}
	grant, left, err := changeQP(s, &r, peer)
	if left != nil {
		left.abandon(s)
	}
	return grant, err
}

// changeQP makes the change if all of it is allowed. It returns the address that is unused afterwards: the old one or,
// after an error, the new one.
func changeQP(s *Session, r *provider.ModifyQPRequest, peer *ah) (grant provider.ModifyQPGrant, left *ah, err error) {
	if err := s.enter(); err != nil {
		return grant, peer, err
	}
	defer s.card.mu.Unlock()
	q, err := s.qps.Get(r.QP)
	if err != nil {
		return grant, peer, err
	}
	c, err := q.changeOf(s, r)
	if err != nil {
		return grant, peer, err
	}
	if c.peer = peer; peer != nil && peer.path.Err() != nil {
		return grant, peer, peer.path.Err()
	}
	q.engine().Do(func() { left, err = c.apply(s, q) })
	if err != nil {
		return grant, peer, err
	}
	if c.mask&verbs.QPAttrEnSQDAsyncNotify != 0 && c.attr.EnSQDAsyncNotify && !q.connected() {
		// The card carries out a datagram in one go, so the queue has drained: what was taken from it
		// is sent and completed, and nothing else will be.
		s.events.put(provider.EventReport{Type: verbs.EventSQDrained, EventID: q.events.id})
	}
	return provider.ModifyQPGrant{Attr: q.currentAttr()}, left, nil
}

// qpChange is a change of a queue pair.
type qpChange struct {
	current, next verbs.QPState
	attr          *verbs.QPAttr
	mask          verbs.QPAttrMask
	token         uint32
	peer          *ah // nil: as it was
}

// changeOf returns the change that a request describes, checked. The caller holds card.mu.
func (q *qp) changeOf(s *Session, r *provider.ModifyQPRequest) (qpChange, error) {
	c := qpChange{attr: &r.Attr, mask: r.Mask, token: r.CompletionToken}
	c.current = verbs.QPState(q.state.Load())
	c.next = c.current
	if r.Mask&verbs.QPAttrState != 0 {
		c.next = r.Attr.State
	}
	return c, c.check(s, q.kind)
}

// check returns an error if the change is not allowed, before any of it is made.
func (c *qpChange) check(s *Session, kind verbs.QPType) error {
	attr, mask := c.attr, c.mask
	if err := verbs.CheckModifyQP(c.current, c.next, kind, mask, verbs.LinkLayerEthernet); err != nil {
		return err
	}
	switch {
	case mask&verbs.QPAttrAltPath != 0: // ib_modify_qp_is_ok allows it, and the kernel's ib_modify_qp refuses it for RoCE
		return fmt.Errorf("%w: RoCE has no alternate path", verbs.ErrInvalid)
	case mask&verbs.QPAttrCurState != 0 && attr.CurState != c.current:
		return fmt.Errorf("%w: the queue pair is in %v, not in %v", verbs.ErrState, c.current, attr.CurState)
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
	return checkConnection(s, attr, mask)
}

// apply makes the change, between two rounds, and returns the address that is not used any more. It fails if the engine
// has changed the queue pair's state since the check.
func (c *qpChange) apply(s *Session, q *qp) (left *ah, err error) {
	if now := verbs.QPState(q.state.Load()); now != c.current {
		return nil, fmt.Errorf("%w: the queue pair has changed to %v meanwhile; query it, and try again", verbs.ErrState, now)
	}
	if c.current == verbs.QPStateReset && c.next == verbs.QPStateInit {
		if err := q.checkCQs(); err != nil { // an overrun from now on finds it in INIT, and fails it
			return nil, err
		}
	}
	q.attr.Set(c.attr, c.mask&^(verbs.QPAttrState|verbs.QPAttrCurState))
	if q.entry.QKey = q.attr.QKey; c.mask&verbs.QPAttrSQPSN != 0 {
		q.entry.SetPSN(c.attr.SQPSN)
	}
	changes, resets := c.mask&verbs.QPAttrState != 0, c.next == verbs.QPStateReset
	if changes && resets {
		q.engine().SetState(q.entry, c.next) // while it has its path: its last acknowledgement leaves
		q.clearAttr()
		q.entry.CompletionToken = c.token
	}
	if q.connected() {
		left = q.connect(c, s.card)
	}
	if changes {
		q.state.Store(uint32(c.next))
	}
	if changes && !resets {
		q.engine().SetState(q.entry, c.next)
	}
	return left, nil
}

// queryQP carries out provider.QueryQP.
func queryQP(s *Session, r provider.QueryQPRequest) (grant provider.QueryQPGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	q, err := s.qps.Get(r.QP)
	if err != nil {
		return grant, err
	}
	grant.Attr = q.currentAttr()
	q.engine().Do(func() { grant.Leaving = q.engine().Leaving(q.entry) })
	return grant, nil
}

// clearAttr sets the attributes to those of RESET. The GSI queue pair has its port and its Q_Key from
// the beginning.
func (q *qp) clearAttr() {
	q.attr, q.entry.QKey = verbs.QPAttr{}, 0
	q.entry.SetPSN(0)
	if q.kind == verbs.QPTypeGSI {
		q.attr.Port, q.attr.QKey, q.entry.QKey = 1, wire.QKeyGSI, wire.QKeyGSI
	}
}

// currentAttr returns the attributes of the queue pair. The caller holds card.mu.
func (q *qp) currentAttr() (attr verbs.QPAttr) {
	q.engine().Do(func() {
		attr = q.attr
		attr.SQPSN = q.entry.PSN()
		if q.connected() {
			attr.RQPSN = q.connection.Responder.ExpectedPSN
		}
		attr.State = verbs.QPState(q.state.Load())
		attr.CurState = attr.State
	})
	return attr
}
