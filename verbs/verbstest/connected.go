// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var connectedTests = []rig.Test{
	{Name: "connected queue pairs have attributes", Run: connectedAttributes},
	{Name: "connected queue pairs refuse attributes", Run: connectedRefuses},
	{Name: "a connected queue pair without a route", Run: connectedWithoutRoute},
	{Name: "connected queue pairs refuse requests", Run: connectedPosts},
}

const (
	masksOfInit  = verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrAccessFlags
	masksOfUCRTR = verbs.QPAttrState | verbs.QPAttrAV | verbs.QPAttrPathMTU | verbs.QPAttrDestQPN | verbs.QPAttrRQPSN
	masksOfRTR   = masksOfUCRTR | verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
	masksOfUCRTS = verbs.QPAttrState | verbs.QPAttrSQPSN
	masksOfRTS   = masksOfUCRTS | verbs.QPAttrTimeout | verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic
)

// rtrMask and rtsMask return the attributes that a type requires.
func rtrMask(kind verbs.QPType) verbs.QPAttrMask {
	if kind == verbs.QPTypeUC {
		return masksOfUCRTR
	}
	return masksOfRTR
}

func rtsMask(kind verbs.QPType) verbs.QPAttrMask {
	if kind == verbs.QPTypeUC {
		return masksOfUCRTS
	}
	return masksOfRTS
}

// Query returns each attribute as it was set, and RESET clears the attributes.
func connectedAttributes(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		for _, address := range w.B.End.Addresses() {
			qp := w.A.NewConnected(kind)
			want := w.A.Connection(address, 0x123456)
			rig.Check(t, qp.Connect(&want))
			got, init, err := qp.Query()
			rig.Check(t, err)
			want.State, want.CurState, want.Cap = verbs.QPStateRTS, verbs.QPStateRTS, init.Cap
			if kind == verbs.QPTypeUC { // has none of these
				want.MaxRDAtomic, want.MaxDestRDAtomic, want.MinRNRTimer, want.Timeout, want.RetryCnt, want.RNRRetry = 0, 0, 0, 0, 0, 0
			}
			if got != want || init.Type != kind {
				t.Errorf("%v: %+v, want %+v", kind, got, want)
			}
			rig.To(t, qp, verbs.QPStateReset)
			got, _, err = qp.Query()
			rig.Check(t, err)
			if want := (verbs.QPAttr{Cap: init.Cap}); got != want {
				t.Errorf("%v after RESET: %+v", kind, got)
			}
			rig.Check(t, qp.Connect(&want))
			rig.Check(t, qp.Close())
		}
	}
}

// Invalid changes are rejected and have no effect.
func connectedRefuses(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		qp := w.A.NewConnected(kind)
		at := func(state verbs.QPState, mask verbs.QPAttrMask, says string, spoil func(a *verbs.QPAttr)) {
			t.Helper()
			before := qp.State()
			attr := w.A.Connection(w.B.End.IPv4, 5)
			attr.State = state
			spoil(&attr)
			rig.Refused(t, qp.Modify(&attr, mask), unix.EINVAL, says)
			if got := rig.StateOf(t, qp); got != before {
				t.Fatalf("%s: state %v", says, got)
			}
		}
		step := func(state verbs.QPState, mask verbs.QPAttrMask) {
			t.Helper()
			attr := w.A.Connection(w.B.End.IPv4, 5)
			attr.State = state
			rig.Check(t, qp.Modify(&attr, mask))
		}
		nothing := func(*verbs.QPAttr) {}
		at(verbs.QPStateInit, masksOfInit|verbs.QPAttrQKey, "cannot set Q_Key", nothing)
		at(verbs.QPStateInit, masksOfInit&^verbs.QPAttrAccessFlags, "needs access flags", nothing)
		at(verbs.QPStateInit, masksOfInit, "access flags 0x20", func(a *verbs.QPAttr) { a.AccessFlags |= verbs.AccessZeroBased })
		step(verbs.QPStateInit, masksOfInit)

		rtr := rtrMask(kind)
		at(verbs.QPStateRTR, rtr&^verbs.QPAttrAV, "needs address vector", nothing)
		at(verbs.QPStateRTR, rtr, "no destination GID", func(a *verbs.QPAttr) { a.AHAttr.GRH.DGID = verbs.GID{} })
		at(verbs.QPStateRTR, rtr, "is a group", func(a *verbs.QPAttr) { a.AHAttr.GRH.DGID = rig.GID(netip.MustParseAddr("239.1.2.3")) })
		at(verbs.QPStateRTR, rtr, "port 0", func(a *verbs.QPAttr) { a.AHAttr.Port = 0 })
		at(verbs.QPStateRTR, rtr, "path MTU number 0", func(a *verbs.QPAttr) { a.PathMTU = 0 })
		at(verbs.QPStateRTR, rtr, "path MTU number 6", func(a *verbs.QPAttr) { a.PathMTU = 6 })
		at(verbs.QPStateRTR, rtr, "destination queue pair number", func(a *verbs.QPAttr) { a.DestQPN = 1 << 24 })
		at(verbs.QPStateRTR, rtr, "RQ PSN", func(a *verbs.QPAttr) { a.RQPSN = 1 << 24 })
		at(verbs.QPStateRTR, rtr|verbs.QPAttrAltPath, "RoCE has no alternate path", nothing)
		if kind == verbs.QPTypeRC {
			at(verbs.QPStateRTR, rtr, "min_rnr_timer 32", func(a *verbs.QPAttr) { a.MinRNRTimer = 32 })
			at(verbs.QPStateRTR, rtr, "max_dest_rd_atomic 255", func(a *verbs.QPAttr) { a.MaxDestRDAtomic = 255 })
		}
		step(verbs.QPStateRTR, rtr)

		rts := rtsMask(kind)
		at(verbs.QPStateRTS, rts, "SQ PSN", func(a *verbs.QPAttr) { a.SQPSN = 1 << 24 })
		at(verbs.QPStateRTS, rts|verbs.QPAttrPathMigState, "path_mig_state 3", func(a *verbs.QPAttr) { a.PathMigState = 3 })
		if kind == verbs.QPTypeRC {
			at(verbs.QPStateRTS, rts, "timeout 32", func(a *verbs.QPAttr) { a.Timeout = 32 })
			at(verbs.QPStateRTS, rts, "retry_cnt 8", func(a *verbs.QPAttr) { a.RetryCnt = 8 })
			at(verbs.QPStateRTS, rts, "rnr_retry 8", func(a *verbs.QPAttr) { a.RNRRetry = 8 })
			at(verbs.QPStateRTS, rts, "max_rd_atomic 255", func(a *verbs.QPAttr) { a.MaxRDAtomic = 255 })
			at(verbs.QPStateSQE, verbs.QPAttrState, "cannot go", nothing)
		}
		step(verbs.QPStateRTS, rts|verbs.QPAttrPathMigState)
	}
}

// A queue pair without a route to its peer does not change to RTR, and can be connected to another peer.
func connectedWithoutRoute(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		qp := w.A.NewConnected(kind)
		attr := w.A.Connection(w.Pair.Unreachable, 5)
		rig.Refused(t, qp.Connect(&attr), unix.EHOSTUNREACH)
		if got := rig.StateOf(t, qp); got != verbs.QPStateInit {
			t.Fatalf("state %v", got)
		}
		attr = w.A.Connection(w.B.End.IPv6, 5)
		attr.State = verbs.QPStateRTR
		rig.Check(t, qp.Modify(&attr, rtrMask(kind)))
	}
}

// Operations that a queue pair's type does not support are rejected when they are posted.
func connectedPosts(t *testing.T, w *rig.World) {
	a := w.A
	word := []verbs.SGE{a.Piece(0, 8)}
	for _, row := range []struct {
		wr   verbs.SendWR
		on   verbs.QPType // 0: both
		says string
	}{
		{verbs.SendWR{Opcode: 77}, 0, "(77) is not an operation"},
		{verbs.SendWR{Opcode: verbs.WRRDMARead}, verbs.QPTypeUC, "RDMA read (4) is not an operation of UC"},
		{verbs.SendWR{Opcode: verbs.WRAtomicCmpAndSwp, SGList: word}, verbs.QPTypeUC, "not an operation of UC"},
		{verbs.SendWR{Opcode: verbs.WRAtomicFetchAndAdd, SGList: word}, verbs.QPTypeUC, "not an operation of UC"},
		{verbs.SendWR{Opcode: verbs.WRSendWithInv}, verbs.QPTypeUC, "not an operation of UC"},
		{verbs.SendWR{Opcode: verbs.WRRDMARead, Flags: verbs.SendInline}, verbs.QPTypeRC, "SendInline is invalid with RDMA read"},
		{verbs.SendWR{Opcode: verbs.WRAtomicFetchAndAdd}, verbs.QPTypeRC, "needs one SGE"},
		{verbs.SendWR{Opcode: verbs.WRAtomicFetchAndAdd, SGList: []verbs.SGE{a.Piece(0, 4)}}, verbs.QPTypeRC, "of 8 bytes"},
		{verbs.SendWR{Opcode: verbs.WRAtomicCmpAndSwp, SGList: append(word, word...)}, verbs.QPTypeRC, "needs one SGE"},
		{verbs.SendWR{Opcode: verbs.WRLocalInv, SGList: word}, 0, "takes no SGEs"},
		{verbs.SendWR{Opcode: verbs.WRSend, Flags: 1 << 7}, 0, "unknown"},
		{verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: make([]verbs.SGE, 100)}, 0, "100 SGEs"},
		{verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendInline, InlineData: make([]byte, 4096)}, 0, "4096 bytes inline"},
	} {
		for _, kind := range rig.ConnectedTypes {
			if row.on != 0 && row.on != kind {
				continue
			}
			qp := a.NewConnected(kind)
			rig.Refused(t, qp.PostSend([]verbs.SendWR{row.wr}), unix.EINVAL, "posted from RTS on")
			attr := a.Connection(w.B.End.IPv4, 5)
			rig.Check(t, qp.Connect(&attr))
			rig.Refused(t, qp.PostSend([]verbs.SendWR{row.wr}), unix.EINVAL, row.says)
			rig.Check(t, qp.Close())
		}
	}
}
