// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var modifyTests = []rig.Test{
	{Name: "modify nothing in RESET", Run: modifyNothingInReset},
	{Name: "modify refuses", Run: modifyRefuses},
	{Name: "modify gives the values", Run: modifyGives},
	{Name: "query QP", Run: queryQP},
}

// modifyNothingInReset checks that Modify without a state is allowed in RESET.
func modifyNothingInReset(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	qp := a.NewQP(rig.DefaultCap())
	rig.Check(t, qp.Modify(&verbs.QPAttr{}, 0))
	rig.Check(t, qp.Activate(rig.TestQKey))
	rig.Check(t, qp.PostSend([]verbs.SendWR{a.Send(1, a.AH(b.End.IPv4), b.QP)}))
	a.Expect(rig.OK(1))
}

// modifyRefuses checks that refused changes have no effect.
func modifyRefuses(t *testing.T, w *rig.World) {
	qp := w.A.NewQP(rig.DefaultCap())
	rows := []struct {
		name string
		attr verbs.QPAttr
		mask verbs.QPAttrMask
		says string
	}{
		{"port 2", verbs.QPAttr{State: verbs.QPStateInit, Port: 2}, rig.InitMask, "port 2"},
		{"P_Key index 1", verbs.QPAttr{State: verbs.QPStateInit, Port: 1, PKeyIndex: 1}, rig.InitMask, "P_Key index 1"},
		{"no Q_Key", verbs.QPAttr{State: verbs.QPStateInit, Port: 1}, rig.InitMask &^ verbs.QPAttrQKey, "needs Q_Key"},
		{"RTS at once", verbs.QPAttr{State: verbs.QPStateRTS}, verbs.QPAttrState | verbs.QPAttrSQPSN, "RESET to RTS"},
		{"ERR from RESET", verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState, "RESET to ERR"},
		{"unknown attribute", verbs.QPAttr{State: verbs.QPStateInit}, rig.InitMask | 1<<30, "0x40000000"},
	}
	for _, row := range rows {
		rig.Refused(t, qp.Modify(&row.attr, row.mask), unix.EINVAL, row.says)
		if got := rig.StateOf(t, qp); got != verbs.QPStateReset || qp.State() != got {
			t.Fatalf("%s: state %v", row.name, got)
		}
	}
	rig.ToInit(t, qp)
	rig.To(t, qp, verbs.QPStateRTR)
	big := qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, SQPSN: 1 << 24}, verbs.QPAttrState|verbs.QPAttrSQPSN)
	rig.Refused(t, big, unix.EINVAL, "24 bits")
	rig.ToRTS(t, qp, 0)
}

// modifyGives checks that Modify returns the new values of the attributes in the mask, and does not change the caller's
// other fields.
func modifyGives(t *testing.T, w *rig.World) {
	qp := w.A.NewQP(rig.DefaultCap())
	attr := verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: rig.TestQKey, SQPSN: 77, CurState: verbs.QPStateErr}
	rig.Check(t, qp.Modify(&attr, rig.InitMask))
	if want := (verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: rig.TestQKey, SQPSN: 77, CurState: verbs.QPStateErr}); attr != want {
		t.Errorf("after INIT: %+v, want %+v", attr, want)
	}
	rig.To(t, qp, verbs.QPStateRTR)
	rig.ToRTS(t, qp, 5)
	for range 3 { // each uses a PSN
		rig.Check(t, qp.PostSend([]verbs.SendWR{w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP)}))
	}
	rig.Drained(t, qp)
	attr = verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS, QKey: 5, PKeyIndex: 9}
	rig.Check(t, qp.Modify(&attr, verbs.QPAttrState|verbs.QPAttrCurState|verbs.QPAttrQKey))
	if want := (verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS, QKey: 5, PKeyIndex: 9}); attr != want {
		t.Errorf("after RTS: %+v, want %+v", attr, want)
	}
	before := verbs.QPAttr{State: verbs.QPStateRTR, QKey: 6, SQPSN: 8}
	attr = before
	rig.Refused(t, qp.Modify(&attr, verbs.QPAttrState|verbs.QPAttrQKey), unix.EINVAL)
	if attr != before {
		t.Errorf("a refused change changed %+v to %+v", before, attr)
	}
	attr.State = verbs.QPStateReset
	rig.Check(t, qp.Modify(&attr, verbs.QPAttrState))
	if attr.State != verbs.QPStateReset || attr.QKey != 6 {
		t.Errorf("after RESET: %+v", attr)
	}
	w.A.Wait(0)
}

// queryQP checks that Query returns the attributes that were set, and granted capacities that are at least the
// requested ones.
func queryQP(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	asked := verbs.QPCap{MaxSendWR: 100, MaxRecvWR: 3, MaxSendSGE: 3, MaxRecvSGE: 5, MaxInlineData: 100}
	qp := a.NewQP(asked)
	rig.ToInit(t, qp)
	rig.To(t, qp, verbs.QPStateRTR)
	rig.ToRTS(t, qp, 0xFFFFFF)
	rig.Check(t, qp.PostSend([]verbs.SendWR{a.Send(1, a.AH(b.End.IPv4), b.QP)}))
	a.Expect(rig.OK(1))
	attr, init, err := qp.Query()
	rig.Check(t, err)
	if attr.QKey != rig.TestQKey || attr.Port != 1 || attr.SQPSN != 0 || attr.State != verbs.QPStateRTS || attr.CurState != verbs.QPStateRTS {
		t.Errorf("attributes %+v", attr)
	}
	got := init.Cap
	if got != attr.Cap || got.MaxSendWR < 100 || got.MaxRecvWR < 3 || got.MaxSendSGE < 3 || got.MaxRecvSGE < 5 || got.MaxInlineData < 100 {
		t.Errorf("granted %+v, requested %+v", got, asked)
	}
	if init.SendCQ != a.CQ || init.Type != verbs.QPTypeUD {
		t.Errorf("initial attributes %+v", init)
	}
	rig.To(t, qp, verbs.QPStateReset)
	if attr, _, _ := qp.Query(); attr.QKey != 0 || attr.Port != 0 || attr.SQPSN != 0 {
		t.Errorf("after RESET: %+v", attr)
	}
}
