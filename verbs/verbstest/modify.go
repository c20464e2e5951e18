package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var modifyTests = []test{
	{name: "modify nothing in RESET", run: modifyNothingInReset},
	{name: "modify refuses", run: modifyRefuses},
	{name: "modify gives the values", run: modifyGives},
	{name: "query QP", run: queryQP},
}

// Modify without the state changes attributes in RESET too, and harms nothing there.
func modifyNothingInReset(t *testing.T, w *world) {
	a, b := w.a, w.b
	qp := a.newQP(defaultCap())
	check(t, qp.Modify(&verbs.QPAttr{}, 0))
	check(t, qp.Activate(testQKey))
	check(t, qp.PostSend([]verbs.SendWR{a.send(1, a.ah(b.end.IPv4), b.qp)}))
	a.expect(ok(1))
}

// What is refused changes nothing.
func modifyRefuses(t *testing.T, w *world) {
	qp := w.a.newQP(defaultCap())
	rows := []struct {
		name string
		attr verbs.QPAttr
		mask verbs.QPAttrMask
		says string
	}{
		{"port 2", verbs.QPAttr{State: verbs.QPStateInit, Port: 2}, initMask, "port 2"},
		{"P_Key index 1", verbs.QPAttr{State: verbs.QPStateInit, Port: 1, PKeyIndex: 1}, initMask, "P_Key index 1"},
		{"no Q_Key", verbs.QPAttr{State: verbs.QPStateInit, Port: 1}, initMask &^ verbs.QPAttrQKey, "needs Q_Key"},
		{"RTS at once", verbs.QPAttr{State: verbs.QPStateRTS}, verbs.QPAttrState | verbs.QPAttrSQPSN, "RESET to RTS"},
		{"ERR from RESET", verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState, "RESET to ERR"},
		{"unknown attribute", verbs.QPAttr{State: verbs.QPStateInit}, initMask | 1<<30, "0x40000000"},
	}
	for _, row := range rows {
		refused(t, qp.Modify(&row.attr, row.mask), unix.EINVAL, row.says)
		if got := stateOf(t, qp); got != verbs.QPStateReset || qp.State() != got {
			t.Fatalf("%s: state %v", row.name, got)
		}
	}
	toInit(t, qp)
	to(t, qp, verbs.QPStateRTR)
	big := qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, SQPSN: 1 << 24}, verbs.QPAttrState|verbs.QPAttrSQPSN)
	refused(t, big, unix.EINVAL, "24 bits")
	toRTS(t, qp, 0)
}

// Modify gives what the attributes of the mask are now, and leaves the others of the caller alone.
func modifyGives(t *testing.T, w *world) {
	qp := w.a.newQP(defaultCap())
	attr := verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey, SQPSN: 77, CurState: verbs.QPStateErr}
	check(t, qp.Modify(&attr, initMask))
	if want := (verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey, SQPSN: 77, CurState: verbs.QPStateErr}); attr != want {
		t.Errorf("after INIT: %+v, want %+v", attr, want)
	}
	to(t, qp, verbs.QPStateRTR)
	toRTS(t, qp, 5)
	for range 3 { // each takes a PSN
		check(t, qp.PostSend([]verbs.SendWR{w.a.send(1, w.a.ah(w.b.end.IPv4), w.b.qp)}))
	}
	drained(t, qp)
	attr = verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS, QKey: 5, PKeyIndex: 9}
	check(t, qp.Modify(&attr, verbs.QPAttrState|verbs.QPAttrCurState|verbs.QPAttrQKey))
	if want := (verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS, QKey: 5, PKeyIndex: 9}); attr != want {
		t.Errorf("after RTS: %+v, want %+v", attr, want)
	}
	before := verbs.QPAttr{State: verbs.QPStateRTR, QKey: 6, SQPSN: 8}
	attr = before
	refused(t, qp.Modify(&attr, verbs.QPAttrState|verbs.QPAttrQKey), unix.EINVAL)
	if attr != before {
		t.Errorf("what was refused changed %+v to %+v", before, attr)
	}
	attr.State = verbs.QPStateReset
	check(t, qp.Modify(&attr, verbs.QPAttrState))
	if attr.State != verbs.QPStateReset || attr.QKey != 6 {
		t.Errorf("after RESET: %+v", attr)
	}
	w.a.wait(0)
}

// Query gives what was set and what was granted: at least what was asked for.
func queryQP(t *testing.T, w *world) {
	a, b := w.a, w.b
	asked := verbs.QPCap{MaxSendWR: 100, MaxRecvWR: 3, MaxSendSGE: 3, MaxRecvSGE: 5, MaxInlineData: 100}
	qp := a.newQP(asked)
	toInit(t, qp)
	to(t, qp, verbs.QPStateRTR)
	toRTS(t, qp, 0xFFFFFF)
	check(t, qp.PostSend([]verbs.SendWR{a.send(1, a.ah(b.end.IPv4), b.qp)}))
	a.expect(ok(1))
	attr, init, err := qp.Query()
	check(t, err)
	if attr.QKey != testQKey || attr.Port != 1 || attr.SQPSN != 0 || attr.State != verbs.QPStateRTS || attr.CurState != verbs.QPStateRTS {
		t.Errorf("attributes %+v", attr)
	}
	got := init.Cap
	if got != attr.Cap || got.MaxSendWR < 100 || got.MaxRecvWR < 3 || got.MaxSendSGE < 3 || got.MaxRecvSGE < 5 || got.MaxInlineData < 100 {
		t.Errorf("granted %+v of %+v", got, asked)
	}
	if init.SendCQ != a.cq || init.Type != verbs.QPTypeUD {
		t.Errorf("initial attributes %+v", init)
	}
	to(t, qp, verbs.QPStateReset)
	if attr, _, _ := qp.Query(); attr.QKey != 0 || attr.Port != 0 || attr.SQPSN != 0 {
		t.Errorf("after RESET: %+v", attr)
	}
}
