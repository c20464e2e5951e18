// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
)

// Calls returns all calls that fail on a closed device, which are all except those that free objects.
func (s *Station) Calls(peer *Station, ah *verbs.AH, route *verbs.AHAttr) map[string]func() error {
	var wcs [1]verbs.WC
	return map[string]func() error{
		"QueryDevice":       func() error { _, err := s.Ctx.QueryDevice(); return err },
		"QueryPort":         func() error { _, err := s.Ctx.QueryPort(1); return err },
		"QueryGID":          func() error { _, err := s.Ctx.QueryGID(1, 0); return err },
		"QueryPKey":         func() error { _, err := s.Ctx.QueryPKey(1, 0); return err },
		"QueryGIDTable":     func() error { _, err := s.Ctx.QueryGIDTable(1); return err },
		"AllocPD":           func() error { _, err := s.Ctx.AllocPD(); return err },
		"CreateCQ":          func() error { _, err := s.Ctx.CreateCQ(1); return err },
		"CreateSRQ":         func() error { _, err := s.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1}); return err },
		"AllocXRCD":         func() error { _, err := s.Ctx.AllocXRCD(); return err },
		"AllocMR":           func() error { _, err := s.PD.AllocMR(1, 0); return err },
		"CreateAH":          func() error { _, err := s.PD.CreateAH(context.Background(), route); return err },
		"AH.Modify":         func() error { return ah.Modify(context.Background(), route) },
		"AH.Query":          func() error { _, err := ah.Query(); return err },
		"CreateCompChannel": func() error { _, err := s.Ctx.CreateCompChannel(); return err },
		"QueryRTValues":     func() error { _, err := s.Ctx.QueryRTValues(); return err },
		"Resize":            func() error { return s.CQ.Resize(256) },
		"ModifyCQ":          func() error { return s.CQ.Modify(1, 1) },
		"Peek":              func() error { _, err := kernel.PeekCQ(s.CQ, 1); return err },
		"ReqNotify":         func() error { _, err := s.CQ.ReqNotify(verbs.CQNextComp); return err },
		"ReqNcompNotif":     func() error { return kernel.ReqNcompNotif(s.CQ, 1) },
		"CreateQP": func() error {
			_, err := s.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.CQ, RecvCQ: s.CQ})
			return err
		},
		"RegMR": func() error {
			_, err := s.PD.RegMR(make([]byte, 1), 0)
			if verbs.KindOf(err) == verbs.ErrUnsupported { // independent of the state of the device
				return verbs.ErrClosed
			}
			return err
		},
		"Rereg":          func() error { return s.MR.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess) },
		"Modify":         func() error { return s.QP.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState) },
		"reset":          func() error { return s.QP.Modify(&verbs.QPAttr{}, verbs.QPAttrState) },
		"Query":          func() error { _, _, err := s.QP.Query(); return err },
		"PostSend":       func() error { return s.QP.PostSend([]verbs.SendWR{s.Send(1, ah, peer.QP)}) },
		"SRQ.PostRecv":   func() error { return s.SRQ.PostRecv([]verbs.RecvWR{{}}) },
		"SRQ.Modify":     func() error { return s.SRQ.Modify(&verbs.SRQAttr{MaxWR: 1}, verbs.SRQMaxWR) },
		"SRQ.Query":      func() error { _, err := s.SRQ.Query(); return err },
		"PostRecv":       func() error { return s.QP.PostRecv([]verbs.RecvWR{{}}) },
		"Poll":           func() error { _, err := s.CQ.Poll(wcs[:]); return err },
		"Wait":           func() error { _, err := s.CQ.Wait(Guard(s), wcs[:]); return err },
		"AttachMcast":    func() error { return s.QP.AttachMcast(GID(GroupV4), 0) },
		"full join":      func() error { _, err := s.Ctx.JoinMulticast(GroupV4, verbs.JoinFullMember); return err },
		"send-only join": func() error { _, err := s.Ctx.JoinMulticast(GroupV4, verbs.JoinSendOnlyFullMember); return err },
		"GetAsyncEvent":  func() error { _, err := s.Ctx.GetAsyncEvent(Guard(s)); return err },
	}
}

// Load returns typical calls of programs, as a load for concurrent tests.
func (s *Station) Load(peer *Station, sent *atomic.Int64) []func() error {
	route, ah, ctx := s.Route(peer.End.IPv4), s.AH(peer.End.IPv4), Guard(s)
	return []func() error{
		func() error {
			err := s.QP.PostSend([]verbs.SendWR{s.Send(1, ah, peer.QP)})
			if err == nil {
				sent.Add(1)
			}
			return err
		},
		func() error { return s.QP.PostRecv([]verbs.RecvWR{{}}) },
		func() error { var wcs [4]verbs.WC; _, err := s.CQ.Poll(wcs[:]); return err },
		func() error { var wcs [4]verbs.WC; _, err := s.CQ.Wait(ctx, wcs[:]); return err },
		func() error { return s.CQ.Resize(256) },
		func() error { return Closed(s.Ctx.CreateCompChannel()) },
		func() error { return Closed(s.PD.AllocMR(10, 0)) },
		func() error { return s.SRQ.PostRecv([]verbs.RecvWR{{}}) },
		func() error { return s.SRQ.Modify(&verbs.SRQAttr{MaxWR: 2 * Depth}, verbs.SRQMaxWR) },
		func() error { return Closed(s.PD.CreateAH(context.Background(), route)) },
		func() error { return ah.Modify(context.Background(), route) },
		func() error {
			return s.MR.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite}, verbs.ReregChangeAccess)
		},
		func() error {
			qp, err := s.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.CQ, RecvCQ: s.CQ})
			if err != nil {
				return err
			}
			if err := qp.Activate(TestQKey); err != nil {
				return err
			}
			return qp.Close()
		},
	}
}

// Closed closes an object immediately after its creation.
func Closed(object Closer, err error) error {
	if err != nil {
		return err
	}
	return object.Close()
}

// Serve waits for messages and reposts their receives, until a call fails.
func (s *Station) Serve(ctx context.Context, got func(n int)) error {
	var wcs [3]verbs.WC
	for {
		n, err := s.CQ.Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		for range n {
			if err := s.QP.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{s.Piece(0, SlotLen)}}}); err != nil {
				return err
			}
		}
		got(n)
	}
}

// Echo waits for a message, reposts the receive, sends a response, and waits for its completion. It runs concurrently
// with the test, and reports errors with Error.
func (s *Station) Echo(ah *verbs.AH, peer *Station) bool {
	var wcs [1]verbs.WC
	ctx, cancel := context.WithTimeout(context.Background(), WaitTimeout)
	defer cancel()
	for _, step := range []func() error{
		func() error { _, err := s.CQ.Wait(ctx, wcs[:]); return err },
		func() error { return s.QP.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{s.Piece(0, SlotLen)}}}) },
		func() error { return s.QP.PostSend([]verbs.SendWR{s.Send(9, ah, peer.QP)}) },
		func() error { _, err := s.CQ.Wait(ctx, wcs[:]); return err },
	} {
		if err := step(); err != nil {
			s.Error(err)
			return false
		}
	}
	return true
}
