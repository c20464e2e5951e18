//go:build linux

package hca

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

// maxRDAtomic is how many reads and atomics a queue pair can have outstanding, each way.
const maxRDAtomic = ids.MaxRDAtomic

// qpAccess is what a queue pair's access flags may have. Those of memory alone mean nothing there.
const qpAccess = verbs.AccessLocalWrite | remoteAccess | verbs.AccessOptionalRange

// checkConnection checks the attributes that only connected queue pairs have. The caller holds card.mu.
func checkConnection(s *Session, attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
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
		{verbs.QPAttrPathMigState, "path_mig_state", uint32(attr.PathMigState), uint32(verbs.MigArmed)},
	} {
		if mask&limit.of != 0 && limit.asked > limit.most {
			return fmt.Errorf("%w: %s %d, at most %d", verbs.ErrInvalid, limit.name, limit.asked, limit.most)
		}
	}
	switch unknown := attr.AccessFlags &^ qpAccess; {
	case mask&verbs.QPAttrAccessFlags != 0 && unknown != 0:
		return fmt.Errorf("%w: access flags 0x%x (%v) of a queue pair; there are remote read, write and atomic", verbs.ErrInvalid, uint32(unknown), unknown)
	case mask&verbs.QPAttrPathMTU != 0 && (attr.PathMTU.Bytes() == 0 || attr.PathMTU > s.card.port().rdma):
		return fmt.Errorf("%w: path MTU number %d; there are 1 (256 bytes) to %d (%v bytes), which is the port's active MTU", verbs.ErrInvalid, uint8(attr.PathMTU), s.card.port().rdma, s.card.port().rdma)
	case mask&verbs.QPAttrAV == 0:
		return nil
	case attr.AHAttr.GRH.DGID.IsMulticast():
		return fmt.Errorf("%w: %v is a group; a connected queue pair has one peer", verbs.ErrInvalid, attr.AHAttr.GRH.DGID)
	}
	return checkAH(&attr.AHAttr)
}

// preparePeer makes the address of a request's peer ready, without waiting for its neighbour. While too many neighbours
// of the user have not answered, it waits for one of them.
func preparePeer(s *Session, r *provider.ModifyQPRequest) (*ah, error) {
	peer, err := newAH(s, &r.Attr.AHAttr, func() (*pd, error) {
		q, err := s.qps.Get(r.QP)
		if err != nil {
			return nil, err
		}
		_, err = q.changeOf(s, r)
		return q.pd, err
	})
	if err != nil {
		return nil, err
	}
	defer s.life.work.Done() // the caller has one of its own
	if peer.path, err = s.card.paths.TakeInTurn(context.Background(), paths.Ends{Source: peer.source, Dest: peer.attr.GRH.DGID}, s); err != nil {
		peer.abandon(s)
		return nil, network.HostError(err)
	}
	return peer, nil
}

// connect gives the engine a connected queue pair's attributes as they are now, and gives the address
// that is not used any more. It runs in Do.
func (q *qp) connect(c *qpChange, card *Card) (left *ah) {
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
		to := c.peer.entry(card)
		q.peer, e.Peer, e.Path, e.Template = c.peer, to.Dest, to.Path, card.capable(to.Template)
	default:
		return nil
	}
	return left
}
