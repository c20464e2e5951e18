// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"context"
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/provider"
)

// modify carries out provider.ModifyQP. The path of a new peer is prepared in advance, as for an address handle, and
// set together with the other attributes.
func (t *qps) modify(r provider.ModifyQPRequest) (grant provider.ModifyQPGrant, err error) {
	if err := t.owner.begin(); err != nil {
		return grant, err
	}
	defer t.owner.finish()
	var peer *ah
	if r.Mask&verbs.QPAttrAV != 0 {
		if peer, err = t.preparePeer(&r); err != nil {
			return grant, err
		}
	}
	grant, left, err := t.change(&r, peer)
	if left != nil {
		left.abandon()
	}
	return grant, err
}

// change makes the change if all of it is allowed. It returns the unused address handle: the old one or, after an
// error, the new one.
func (t *qps) change(r *provider.ModifyQPRequest, peer *ah) (grant provider.ModifyQPGrant, left *ah, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, peer, err
	}
	defer t.owner.leave()
	q, err := t.Get(r.QP)
	if err != nil {
		return grant, peer, err
	}
	c, err := q.changeOf(t.owner, r)
	if err != nil {
		return grant, peer, err
	}
	if c.peer = peer; peer != nil && peer.path.Err() != nil {
		return grant, peer, peer.path.Err()
	}
	q.engine().Do(func() { left, err = c.apply(q) })
	if err != nil {
		return grant, peer, err
	}
	if c.mask&verbs.QPAttrEnSQDAsyncNotify != 0 && c.attr.EnSQDAsyncNotify && !q.connected() {
		// The card carries out each datagram completely, so the queue has drained: all requests dequeued from it are
		// sent and completed.
		t.owner.events.put(provider.EventReport{Type: verbs.EventSQDrained, EventID: q.events.id})
	}
	return provider.ModifyQPGrant{Attr: q.currentAttr()}, left, nil
}

// qpChange is a change of a queue pair.
type qpChange struct {
	current, next verbs.QPState
	attr          *verbs.QPAttr
	mask          verbs.QPAttrMask
	token         uint32
	peer          *ah // nil: unchanged
}

// changeOf returns the change that a request describes, after checking it. The caller holds the card's lock.
func (q *qp) changeOf(o *owner, r *provider.ModifyQPRequest) (qpChange, error) {
	c := qpChange{attr: &r.Attr, mask: r.Mask, token: r.CompletionToken}
	c.current = verbs.QPState(q.state.Load())
	c.next = c.current
	if r.Mask&verbs.QPAttrState != 0 {
		c.next = r.Attr.State
	}
	return c, c.check(o, q.kind)
}

// check returns an error if the change is not allowed. It changes nothing.
func (c *qpChange) check(o *owner, kind verbs.QPType) error {
	attr, mask := c.attr, c.mask
	if err := kernel.CheckModifyQP(c.current, c.next, kind, mask, ib.LinkLayerEthernet); err != nil {
		return err
	}
	switch {
	case mask&verbs.QPAttrAltPath != 0: // ib_modify_qp_is_ok allows it, but ib_modify_qp refuses it for RoCE
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
	case mask&verbs.QPAttrQKey != 0 && attr.QKey&wire.QKeyPrivileged != 0 && !o.config.mayPrivileged():
		return fmt.Errorf("%w: Q_Key %v has the high bit set, which needs %s", verbs.ErrPermission, attr.QKey, o.config.privilege())
	}
	return checkConnection(o, attr, mask)
}

// apply makes the change, between two rounds, and returns the unused address handle. It fails if the engine has changed
// the queue pair's state since the check.
func (c *qpChange) apply(q *qp) (left *ah, err error) {
	if now := verbs.QPState(q.state.Load()); now != c.current {
		return nil, fmt.Errorf("%w: the queue pair has changed to %v meanwhile; query it and retry", verbs.ErrState, now)
	}
	if c.current == verbs.QPStateReset && c.next == verbs.QPStateInit {
		if err := q.checkCQs(); err != nil { // an overrun from now on finds the queue pair in INIT and moves it to ERR
			return nil, err
		}
	}
	q.attr.Set(c.attr, c.mask&^(verbs.QPAttrState|verbs.QPAttrCurState))
	if q.entry.QKey = q.attr.QKey; c.mask&verbs.QPAttrSQPSN != 0 {
		q.entry.SetPSN(c.attr.SQPSN)
	}
	changes, resets := c.mask&verbs.QPAttrState != 0, c.next == verbs.QPStateReset
	if changes && resets {
		q.entry.SetState(c.next) // before the path is removed: the last ACK is sent on it
		q.clearAttr()
		q.entry.CompletionToken = c.token
	}
	if q.connected() {
		left = q.connect(c)
	}
	if changes {
		q.state.Store(uint32(c.next))
	}
	if changes && !resets {
		q.entry.SetState(c.next)
	}
	return left, nil
}

// query carries out provider.QueryQP.
func (t *qps) query(r provider.QueryQPRequest) (grant provider.QueryQPGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	q, err := t.Get(r.QP)
	if err != nil {
		return grant, err
	}
	grant.Attr = q.currentAttr()
	q.engine().Do(func() { grant.Leaving = q.entry.Leaving() })
	return grant, nil
}

// currentAttr returns the attributes of the queue pair. The caller holds the card's lock.
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

// maxRDAtomic is the maximum number of outstanding READs and atomics of a queue pair, in each direction.
const maxRDAtomic = ids.MaxRDAtomic

// qpAccess has the valid access flags of a queue pair. The flags that concern only memory are ignored there.
const qpAccess = verbs.AccessLocalWrite | remoteAccess | verbs.AccessOptionalRange

// checkConnection checks the attributes that only connected queue pairs have. The caller holds the card's lock.
func checkConnection(o *owner, attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	for _, limit := range []struct {
		of          verbs.QPAttrMask
		name        string
		asked, most uint32
	}{
		{verbs.QPAttrDestQPN, "destination queue pair number", uint32(attr.DestQPN), uint32(wire.QPNMax)},
		{verbs.QPAttrRQPSN, "RQ PSN", uint32(attr.RQPSN), uint32(wire.PSNMask)},
		{verbs.QPAttrMinRNRTimer, "min_rnr_timer", uint32(attr.MinRNRTimer), 31},
		{verbs.QPAttrTimeout, "timeout", uint32(attr.Timeout), 31},
		{verbs.QPAttrRetryCnt, "retry_cnt", uint32(attr.RetryCnt), 7},
		{verbs.QPAttrRNRRetry, "rnr_retry", uint32(attr.RNRRetry), 7},
		{verbs.QPAttrMaxQPRDAtomic, "max_rd_atomic", uint32(attr.MaxRDAtomic), maxRDAtomic},
		{verbs.QPAttrMaxDestRDAtomic, "max_dest_rd_atomic", uint32(attr.MaxDestRDAtomic), maxRDAtomic},
		{verbs.QPAttrPathMigState, "path_mig_state", uint32(attr.PathMigState), uint32(ib.MigArmed)},
	} {
		if mask&limit.of != 0 && limit.asked > limit.most {
			return fmt.Errorf("%w: %s %d, at most %d", verbs.ErrInvalid, limit.name, limit.asked, limit.most)
		}
	}
	switch unknown := attr.AccessFlags &^ qpAccess; {
	case mask&verbs.QPAttrAccessFlags != 0 && unknown != 0:
		return fmt.Errorf("%w: access flags 0x%x (%v) are invalid for a queue pair; use remote read, write and atomic", verbs.ErrInvalid, uint32(unknown), unknown)
	case mask&verbs.QPAttrPathMTU != 0 && (attr.PathMTU.Bytes() == 0 || attr.PathMTU > o.device.port.ActiveMTU()):
		return fmt.Errorf("%w: path MTU number %d; it must be 1 (256 bytes) to %d (%v bytes), the active MTU of the port", verbs.ErrInvalid, uint8(attr.PathMTU), o.device.port.ActiveMTU(), o.device.port.ActiveMTU())
	case mask&verbs.QPAttrAV == 0:
		return nil
	case attr.AHAttr.GRH.DGID.IsMulticast():
		return fmt.Errorf("%w: %v is a group; a connected queue pair has one peer", verbs.ErrInvalid, attr.AHAttr.GRH.DGID)
	}
	return checkAH(&attr.AHAttr)
}

// preparePeer prepares the address handle of a request's peer, without waiting for its neighbour. While too many
// neighbours of the user have not responded, it waits for one of them.
func (t *qps) preparePeer(r *provider.ModifyQPRequest) (*ah, error) {
	peer, err := newAH(t.owner, &r.Attr.AHAttr, func() (*pd, error) {
		q, err := t.Get(r.QP)
		if err != nil {
			return nil, err
		}
		_, err = q.changeOf(t.owner, r)
		return q.pd, err
	})
	if err != nil {
		return nil, err
	}
	defer t.owner.finish() // the caller holds its own
	if peer.path, err = t.owner.device.paths.TakeInTurn(context.Background(), paths.Ends{Source: peer.source, Dest: peer.attr.GRH.DGID}, t.owner); err != nil {
		peer.abandon()
		return nil, network.HostError(err)
	}
	return peer, nil
}

// connect passes the current attributes of a connected queue pair to the engine, and returns the unused address handle.
// It runs in Do.
func (q *qp) connect(c *qpChange) (left *ah) {
	e, attr := q.connection, &q.attr
	e.PeerQPN, e.MTU, e.Access = attr.DestQPN, attr.PathMTU, attr.AccessFlags
	e.MinRNRTimer, e.MaxDestRDAtomic = attr.MinRNRTimer, attr.MaxDestRDAtomic
	e.Timeout, e.RetryCnt, e.RNRRetry, e.MaxRDAtomic = attr.Timeout, attr.RetryCnt, attr.RNRRetry, attr.MaxRDAtomic
	if c.mask&verbs.QPAttrRQPSN != 0 || c.next == verbs.QPStateReset {
		e.Responder.ExpectedPSN = attr.RQPSN
	}
	if c.mask&verbs.QPAttrEnSQDAsyncNotify != 0 || c.next != verbs.QPStateSQD {
		e.NotifyDrained = c.next == verbs.QPStateSQD && c.attr.EnSQDAsyncNotify
	}
	switch left = q.peer; {
	case c.next == verbs.QPStateReset:
		q.peer, e.Peer, e.Path, e.Template = nil, wire.GID{}, nil, wire.Template{}
	case c.peer != nil:
		to := c.peer.engineEntry()
		if c.peer.owner.device.marks {
			to.Template = to.Template.ECNCapable()
		}
		q.peer, e.Peer, e.Path, e.Template = c.peer, to.Dest, to.Path, to.Template
	default:
		return nil
	}
	return left
}
