package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var stateTests = []test{
	{name: "post by state", run: postByState},
	{name: "ERR flushes", run: errFlushes},
	{name: "SQD holds sends", run: sqdHoldsSends},
	{name: "SQE", run: sqe},
	{name: "RESET forgets", run: resetForgets},
	{name: "destroy with completions", run: destroyWithCompletions},
}

// to moves a queue pair to a state that needs no attributes.
func to(t testing.TB, qp *verbs.QP, state verbs.QPState) {
	t.Helper()
	check(t, qp.Modify(&verbs.QPAttr{State: state}, verbs.QPAttrState))
}

const initMask = verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey

func toInit(t testing.TB, qp *verbs.QP) {
	t.Helper()
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey}, initMask))
}

func toRTS(t testing.TB, qp *verbs.QP, first verbs.PSN) {
	t.Helper()
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, SQPSN: first}, verbs.QPAttrState|verbs.QPAttrSQPSN))
}

func stateOf(t testing.TB, qp *verbs.QP) verbs.QPState {
	t.Helper()
	attr, _, err := qp.Query()
	check(t, err)
	return attr.State
}

// What can be posted in which state: receives from INIT on, sends from RTS on.
func postByState(t *testing.T, w *world) {
	a, b := w.a, w.b
	qp := a.newQP(defaultCap())
	ah := a.ah(b.end.IPv4)
	rows := []struct {
		state      verbs.QPState
		enter      func()
		send, recv error
	}{
		{verbs.QPStateReset, func() {}, unix.EINVAL, unix.EINVAL},
		{verbs.QPStateInit, func() { toInit(t, qp) }, unix.EINVAL, nil},
		{verbs.QPStateRTR, func() { to(t, qp, verbs.QPStateRTR) }, unix.EINVAL, nil},
		{verbs.QPStateRTS, func() { toRTS(t, qp, 5) }, nil, nil},
		{verbs.QPStateSQD, func() { to(t, qp, verbs.QPStateSQD) }, nil, nil},
		{verbs.QPStateErr, func() { to(t, qp, verbs.QPStateErr) }, nil, nil},
	}
	for _, row := range rows {
		row.enter()
		if got := qp.State(); got != row.state || stateOf(t, qp) != row.state {
			t.Fatalf("state %v, want %v", got, row.state)
		}
		send := qp.PostSend([]verbs.SendWR{a.send(1, ah, b.qp)})
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
func errFlushes(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	b.receive(0)
	to(t, a.qp, verbs.QPStateSQD) // keeps sends in the queue
	for i := range 3 {
		wr := a.send(uint64(10+i), ah, b.qp)
		wr.Flags = verbs.SendFlags(i%2) * verbs.SendSignaled // flushed ones complete, signaled or not
		a.post(wr)
	}
	a.receive(20, 21)
	w.nothingElse()
	to(t, a.qp, verbs.QPStateErr)
	a.expect(flushed(10), flushed(11), flushed(12), flushed(20), flushed(21))
	a.receive(22)
	a.expect(flushed(22))
	a.post(a.send(13, ah, b.qp))
	a.expect(flushed(13))
	w.nothingElse() // nothing was sent
}

// SQD holds sends back; receives go on. RTS lets them go.
func sqdHoldsSends(t *testing.T, w *world) {
	a, b := w.a, w.b
	to(t, a.qp, verbs.QPStateSQD)
	a.post(a.send(1, a.ah(b.end.IPv4), b.qp))
	b.receive(0)
	a.receive(5)
	b.post(b.send(2, b.ah(a.end.IPv4), a.qp))
	a.expect(ok(5))
	b.expect(ok(2))
	w.nothingElse()
	to(t, a.qp, verbs.QPStateRTS)
	a.expect(ok(1))
	b.expect(ok(0))
	w.nothingElse()
}

// A local error stops the send queue (SQE): what follows is flushed, receiving goes
// on, and RTS starts it again.
func sqe(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	long := a.send(2, ah, b.qp, a.mr.SGE(0, a.mtu()-1), a.piece(20, 1), a.piece(30, 1))
	b.receive(0, 1)
	a.post(a.send(1, ah, b.qp), long, a.send(3, ah, b.qp))
	a.expect(ok(1), outcome{2, verbs.WCLocLenErr}, flushed(3))
	b.expect(ok(0))
	if got := stateOf(t, a.qp); got != verbs.QPStateSQE {
		t.Fatalf("state %v", got)
	}
	a.receive(7)
	b.post(b.send(4, b.ah(a.end.IPv4), a.qp))
	a.expect(ok(7))
	b.expect(ok(4))
	a.post(a.send(5, ah, b.qp))
	a.expect(flushed(5))
	wrong := a.qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS}, verbs.QPAttrState|verbs.QPAttrCurState)
	refused(t, wrong, unix.EINVAL, "SQE")
	check(t, a.qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateSQE}, verbs.QPAttrState|verbs.QPAttrCurState))
	a.post(a.send(6, ah, b.qp))
	a.expect(ok(6))
	b.expect(ok(1))
	w.nothingElse()
}

// mtu is the active RDMA MTU, in bytes.
func (s *station) mtu() int {
	s.Helper()
	port, err := s.ctx.QueryPort(1)
	check(s, err)
	return port.ActiveMTU.Bytes()
}

// RESET empties the queues without completions, and takes those that wait out of the CQ.
func resetForgets(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	neighbour := a.active(defaultCap())
	for range 3 {
		for i := range depth {
			a.post(a.send(uint64(i), ah, b.qp))
		}
		check(t, neighbour.PostSend([]verbs.SendWR{a.send(99, ah, b.qp)}))
		a.receive(0, 1)
		drained(t, a.qp)
		drained(t, neighbour)
		to(t, a.qp, verbs.QPStateReset)
		a.expect(ok(99))
		same(t, completions(t, a.cq))
		check(t, a.qp.Activate(testQKey))
	}
	// All slots are free again, and numbers start anew.
	a.receive(0, 1, 2, 3, 4, 5, 6, 7)
	for i := range depth {
		a.post(a.send(uint64(i), ah, b.qp))
	}
	a.wait(depth)
	w.nothingElse()
}

// A queue pair that is closed takes its completions along; its slot's next owner
// never sees them.
func destroyWithCompletions(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	for range 20 {
		qp := a.active(defaultCap())
		check(t, qp.PostSend([]verbs.SendWR{a.send(1, ah, b.qp), a.send(2, ah, b.qp)}))
		drained(t, qp)
		check(t, qp.Close())
		refused(t, qp.PostSend([]verbs.SendWR{a.send(1, ah, b.qp)}), unix.EINVAL)
		refused(t, qp.Close(), unix.EINVAL, "closed already")
		next := a.active(defaultCap())
		check(t, next.PostSend([]verbs.SendWR{a.send(3, ah, b.qp)}))
		a.expect(ok(3))
		check(t, next.Close())
	}
	w.nothingElse()
}
