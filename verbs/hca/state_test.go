package hca

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// to moves a queue pair to a state that needs no attributes.
func to(t testing.TB, qp *verbs.QP, state verbs.QPState) {
	t.Helper()
	check(t, qp.Modify(&verbs.QPAttr{State: state}, verbs.QPAttrState))
}

func toInit(t testing.TB, qp *verbs.QP) {
	t.Helper()
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey},
		verbs.QPAttrState|verbs.QPAttrPKeyIndex|verbs.QPAttrPort|verbs.QPAttrQKey))
}

func stateOf(t testing.TB, qp *verbs.QP) verbs.QPState {
	t.Helper()
	attr, _, err := qp.Query()
	check(t, err)
	return attr.State
}

// What can be posted in which state: receives from INIT on, sends from RTS on.
func TestPostByState(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	qp := a.newQP(defaultCap())
	ah := a.ah("10.0.0.2")
	rows := []struct {
		state      verbs.QPState
		enter      func()
		send, recv error
	}{
		{verbs.QPStateReset, func() {}, unix.EINVAL, unix.EINVAL},
		{verbs.QPStateInit, func() { toInit(t, qp) }, unix.EINVAL, nil},
		{verbs.QPStateRTR, func() { to(t, qp, verbs.QPStateRTR) }, unix.EINVAL, nil},
		{verbs.QPStateRTS, func() {
			check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, SQPSN: 5}, verbs.QPAttrState|verbs.QPAttrSQPSN))
		}, nil, nil},
		{verbs.QPStateSQD, func() { to(t, qp, verbs.QPStateSQD) }, nil, nil},
		{verbs.QPStateErr, func() { to(t, qp, verbs.QPStateErr) }, nil, nil},
	}
	for _, row := range rows {
		row.enter()
		if got := qp.State(); got != row.state || stateOf(t, qp) != row.state {
			t.Fatalf("state %v, want %v", got, row.state)
		}
		send := qp.PostSend([]verbs.SendWR{a.send(1, ah, b)})
		recv := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{a.piece(0, slotLen)}}})
		for _, pair := range [][2]error{{send, row.send}, {recv, row.recv}} {
			if got, want := pair[0], pair[1]; want == nil {
				check(t, got)
			} else {
				refused(t, got, want, row.state.String())
			}
		}
	}
}

// ERR completes everything outstanding in order, and what is posted afterwards too.
func TestErrorFlushes(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	to(t, a.qp, verbs.QPStateSQD) // keeps sends in the queue
	for i := range 3 {
		wr := a.send(uint64(10+i), ah, b)
		wr.Flags = verbs.SendFlags(i%2) * verbs.SendSignaled // flushed ones complete, signaled or not
		a.post(wr)
	}
	a.receive(20, 21)
	w.run()
	expect(t, a.completions())
	to(t, a.qp, verbs.QPStateErr)
	expect(t, a.completions(), flushed(10), flushed(11), flushed(12), flushed(20), flushed(21))
	a.receive(22)
	a.post(a.send(13, ah, b))
	w.run()
	expect(t, a.completions(), flushed(13), flushed(22))
	if sent := a.device.engine.Counters().Sent; sent != 0 {
		t.Errorf("%d sent", sent)
	}
}

// SQD holds sends back; receives go on. RTS lets them go.
func TestSQDHoldsSends(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	to(t, a.qp, verbs.QPStateSQD)
	a.post(a.send(1, a.ah("10.0.0.2"), b))
	b.receive(0)
	a.receive(5)
	b.post(b.send(2, b.ah("10.0.0.1"), a))
	w.run()
	expect(t, a.completions(), ok(5))
	to(t, a.qp, verbs.QPStateRTS)
	w.run()
	expect(t, a.completions(), ok(1))
	expect(t, b.completions(), ok(2), ok(0))
}

// A local error stops the send queue (SQE): what follows is flushed, receiving goes
// on, and RTS starts it again.
func TestSQE(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	long := a.send(2, ah, b, a.piece(0, 2048), a.piece(1, 2048), a.piece(2, 1))
	a.post(a.send(1, ah, b), long, a.send(3, ah, b))
	b.receive(0, 1)
	w.run()
	expect(t, a.completions(), ok(1), outcome{2, verbs.WCLocLenErr}, flushed(3))
	if got := stateOf(t, a.qp); got != verbs.QPStateSQE {
		t.Fatalf("state %v", got)
	}
	a.receive(7)
	b.post(b.send(4, b.ah("10.0.0.1"), a))
	a.post(a.send(5, ah, b))
	w.run()
	expect(t, a.completions(), flushed(5), ok(7))
	wrong := a.qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS}, verbs.QPAttrState|verbs.QPAttrCurState)
	refused(t, wrong, unix.EINVAL, "SQE")
	check(t, a.qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateSQE}, verbs.QPAttrState|verbs.QPAttrCurState))
	a.post(a.send(6, ah, b))
	w.run()
	expect(t, a.completions(), ok(6))
	expect(t, b.completions(), ok(0), ok(4), ok(1))
}

// RESET empties the queues without completions, and takes those that wait out of the CQ.
func TestResetForgets(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	neighbour := a.newQP(defaultCap())
	check(t, neighbour.Activate(testQKey))
	for range 3 {
		for i := range depth {
			a.post(a.send(uint64(i), ah, b))
		}
		check(t, neighbour.PostSend([]verbs.SendWR{a.send(99, ah, b)}))
		a.receive(0, 1)
		w.run()
		to(t, a.qp, verbs.QPStateReset)
		expect(t, a.completions(), ok(99))
		check(t, a.qp.Activate(testQKey))
	}
	// All slots are free again, and numbers start anew.
	a.receive(0, 1, 2, 3, 4, 5, 6, 7)
	for i := range depth {
		a.post(a.send(uint64(i), ah, b))
	}
	w.run()
	if got := a.completions(); len(got) != depth {
		t.Errorf("%d completions of %d", len(got), depth)
	}
}

// Modify without the state changes attributes in RESET too, and harms nothing there.
func TestModifyNothingInReset(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	qp := a.newQP(defaultCap())
	check(t, qp.Modify(&verbs.QPAttr{}, 0))
	check(t, qp.Activate(testQKey))
	check(t, qp.PostSend([]verbs.SendWR{a.send(1, a.ah("10.0.0.2"), b)}))
	w.run()
	expect(t, a.completions(), ok(1))
}

// A queue pair that is closed takes its completions along; its slot's next owner
// never sees them.
func TestDestroyWithCompletions(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	for range 20 {
		qp := a.newQP(defaultCap())
		check(t, qp.Activate(testQKey))
		check(t, qp.PostSend([]verbs.SendWR{a.send(1, ah, b), a.send(2, ah, b)}))
		w.run()
		check(t, qp.Close())
		refused(t, qp.PostSend([]verbs.SendWR{a.send(1, ah, b)}), unix.EINVAL)
		refused(t, qp.Close(), unix.EINVAL, "closed already")
		next := a.newQP(defaultCap())
		check(t, next.Activate(testQKey))
		check(t, next.PostSend([]verbs.SendWR{a.send(3, ah, b)}))
		w.run()
		expect(t, a.completions(), ok(3))
		check(t, next.Close())
	}
}

// What is refused changes nothing.
func TestModifyRefuses(t *testing.T) {
	w := newStillPair(t)
	qp := w.a.newQP(defaultCap())
	full := verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey
	rows := []struct {
		name string
		attr verbs.QPAttr
		mask verbs.QPAttrMask
		says string
	}{
		{"port 2", verbs.QPAttr{State: verbs.QPStateInit, Port: 2}, full, "port 2"},
		{"P_Key index 1", verbs.QPAttr{State: verbs.QPStateInit, Port: 1, PKeyIndex: 1}, full, "P_Key index 1"},
		{"no Q_Key", verbs.QPAttr{State: verbs.QPStateInit, Port: 1}, full &^ verbs.QPAttrQKey, "needs Q_Key"},
		{"RTS at once", verbs.QPAttr{State: verbs.QPStateRTS}, verbs.QPAttrState | verbs.QPAttrSQPSN, "RESET to RTS"},
		{"ERR from RESET", verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState, "RESET to ERR"},
		{"unknown attribute", verbs.QPAttr{State: verbs.QPStateInit}, full | 1<<30, "0x40000000"},
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
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS}, verbs.QPAttrState|verbs.QPAttrSQPSN))
	event := qp.Modify(&verbs.QPAttr{State: verbs.QPStateSQD, EnSQDAsyncNotify: true}, verbs.QPAttrState|verbs.QPAttrEnSQDAsyncNotify)
	refused(t, event, unix.EOPNOTSUPP, "drained")
}

// Query gives what was set and what was granted: at least what was asked for.
func TestQuery(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	asked := verbs.QPCap{MaxSendWR: 100, MaxRecvWR: 3, MaxSendSGE: 3, MaxRecvSGE: 5, MaxInlineData: 100}
	qp := a.newQP(asked)
	toInit(t, qp)
	to(t, qp, verbs.QPStateRTR)
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, SQPSN: 0xFFFFFF}, verbs.QPAttrState|verbs.QPAttrSQPSN))
	check(t, qp.PostSend([]verbs.SendWR{a.send(1, a.ah("10.0.0.2"), b)}))
	w.run()
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
