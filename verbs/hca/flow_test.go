package hca

import (
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// A full send queue refuses, and takes again what polled completions have freed.
func TestSendQueueFull(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	wr := a.send(1, a.ah("10.0.0.2"), b)
	fill := func() (n int) {
		for {
			err := a.qp.PostSend([]verbs.SendWR{wr})
			if err != nil {
				refused(t, err, unix.ENOMEM, "max_send_wr")
				return n
			}
			n++
		}
	}
	if n := fill(); n != depth {
		t.Fatalf("%d requests fit a queue of %d", n, depth)
	}
	w.run()
	if n := fill(); n != 0 {
		t.Errorf("%d slots came free before a completion was polled", n)
	}
	for range depth {
		var one [1]verbs.WC
		if n, err := a.cq.Poll(one[:]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n := fill(); n != 1 {
			t.Errorf("%d slots came free with one completion", n)
		}
		w.run()
	}
}

// Slots of unsignaled requests come free when they are sent: nobody polls.
func TestUnsignaledSlotsComeFree(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	wr := a.send(1, a.ah("10.0.0.2"), b)
	wr.Flags = 0
	for range 10 {
		for range depth {
			a.post(wr)
		}
		refused(t, a.qp.PostSend([]verbs.SendWR{wr}), unix.ENOMEM)
		w.run()
	}
	expect(t, a.completions())
	if c := a.device.engine.Counters(); c.Sent != 10*depth {
		t.Errorf("sent %d", c.Sent)
	}
}

func TestRecvQueueFull(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	wr := []verbs.RecvWR{{SGList: []verbs.SGE{b.piece(0, slotLen)}}}
	for range depth {
		check(t, b.qp.PostRecv(wr))
	}
	refused(t, b.qp.PostRecv(wr), unix.ENOMEM, "max_recv_wr")
	a.post(a.send(1, a.ah("10.0.0.2"), b))
	w.run()
	refused(t, b.qp.PostRecv(wr), unix.ENOMEM)
	expect(t, b.completions(), ok(0))
	check(t, b.qp.PostRecv(wr))
	refused(t, b.qp.PostRecv(wr), unix.ENOMEM)
}

// A CQ as large as all that can be outstanding never overruns, whatever is posted and
// polled when: a slot is held until its completion has been polled.
func TestCQNeverOverruns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newStillPair(t)
	a, b := w.a, w.b
	cq, err := a.ctx.CreateCQ(2 * depth)
	check(t, err)
	qp, err := a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: defaultCap()})
	check(t, err)
	check(t, qp.Activate(testQKey))
	own, other := a.ah("10.0.0.1"), a.ah("10.0.0.2")
	posted, completed := map[bool]int{}, map[bool]int{}
	for range 20000 {
		switch random.IntN(5) {
		case 0, 1:
			wr := a.send(1, own, a)
			wr.RemoteQPN, wr.Flags = qp.Number(), verbs.SendFlags(random.IntN(2))*verbs.SendSignaled
			if random.IntN(2) == 0 {
				wr.AH, wr.RemoteQPN = other, b.qp.Number()
			}
			if qp.PostSend([]verbs.SendWR{wr}) == nil && wr.Flags != 0 {
				posted[false]++
			}
		case 2:
			if qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{a.piece(0, slotLen)}}}) == nil {
				posted[true]++
			}
		case 3:
			w.run()
		case 4:
			wcs := make([]verbs.WC, 1+random.IntN(4))
			n, err := cq.Poll(wcs)
			check(t, err)
			for _, wc := range wcs[:n] {
				completed[wc.Opcode == verbs.WCRecv]++
			}
		}
	}
	w.run()
	for _, wc := range completionsOf(t, cq) {
		completed[wc.Opcode == verbs.WCRecv]++
	}
	if posted[false] != completed[false] || completed[true] == 0 || completed[true] > posted[true] {
		t.Errorf("posted %v, completed %v (true: receives)", posted, completed)
	}
}

// A CQ that is too small fails, with its queue pairs: nothing is lost in silence.
func TestCQOverrun(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	small, err := b.ctx.CreateCQ(4)
	check(t, err)
	qp, err := b.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: b.cq, RecvCQ: small, Cap: defaultCap()})
	check(t, err)
	check(t, qp.Activate(testQKey))
	ah := a.ah("10.0.0.2")
	for i := range 6 {
		check(t, qp.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{b.piece(i, slotLen)}}}))
		wr := a.send(uint64(i), ah, b)
		wr.RemoteQPN = qp.Number()
		a.post(wr)
	}
	w.run()
	var wcs [8]verbs.WC
	n, err := small.Poll(wcs[:])
	check(t, err)
	expect(t, wcs[:n], ok(0), ok(1), ok(2), ok(3))
	_, err = small.Poll(wcs[:])
	refused(t, err, unix.EOVERFLOW, "4 completions", "make it as large")
	if _, err := small.Wait(guard(t), wcs[:]); err == nil {
		t.Error("Wait on a CQ that has failed")
	}
	attr, _, err := qp.Query()
	check(t, err)
	if drops := b.drops(); attr.State != verbs.QPStateErr || drops["cq_full"] != 1 || drops["qp_state"] != 1 {
		t.Errorf("state %v, drops %v", attr.State, drops)
	}
	// Others are not touched.
	b.receive(0)
	a.post(a.send(1, ah, b))
	w.run()
	expect(t, b.completions(), ok(0))
}

// Posting and polling allocate nothing.
func TestNoAllocations(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	recv := []verbs.RecvWR{{SGList: []verbs.SGE{b.piece(0, slotLen)}}}
	plain, inline := a.send(1, a.ah("10.0.0.2"), b, a.piece(0, 64), a.piece(1, 64)), a.send(2, a.ah("fd00::2"), b, a.piece(0, 60))
	inline.Flags |= verbs.SendInline
	send := []verbs.SendWR{plain, inline}
	var wcs [4]verbs.WC
	round := func() {
		errs := [...]error{b.qp.PostRecv(recv), b.qp.PostRecv(recv), a.qp.PostSend(send)}
		if errs != [3]error{} {
			t.Fatal(errs)
		}
		sent, _ := a.cq.Poll(wcs[:])
		got, _ := b.cq.Poll(wcs[:])
		if sent != 2 || got != 2 {
			t.Fatalf("%d sent, %d received", sent, got)
		}
	}
	round()
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	full := func() { _ = a.qp.PostSend(nil); _ = b.qp.PostRecv(nil) }
	if n := testing.AllocsPerRun(100, full); n != 0 {
		t.Errorf("%v allocations for an empty list", n)
	}
}
