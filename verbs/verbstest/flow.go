package verbstest

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var flowTests = []test{
	{name: "send queue full", run: sendQueueFull},
	{name: "unsignaled slots come free", run: unsignaledSlots},
	{name: "receive queue full", run: recvQueueFull},
	{name: "CQ never overruns", run: cqNeverOverruns},
}

// fill posts until the queue is full, and gives how many requests went in.
func (s *station) fill(wr verbs.SendWR) (n int) {
	s.Helper()
	for {
		err := s.qp.PostSend([]verbs.SendWR{wr})
		if err != nil {
			refused(s, err, unix.ENOMEM, "max_send_wr")
			return n
		}
		n++
	}
}

// granted is how many requests the station's queues hold.
func (s *station) granted() (sends, receives int) {
	s.Helper()
	_, init, err := s.qp.Query()
	check(s, err)
	return int(init.Cap.MaxSendWR), int(init.Cap.MaxRecvWR)
}

// A full send queue refuses requests until completions have been polled.
func sendQueueFull(t *testing.T, w *world) {
	a, b := w.a, w.b
	wr := a.send(1, a.ah(b.end.IPv4), b.qp)
	most, _ := a.granted()
	if n := a.fill(wr); n != most {
		t.Fatalf("%d requests fit a queue of %d", n, most)
	}
	drained(t, a.qp)
	if n := a.fill(wr); n != 0 {
		t.Errorf("%d slots came free before a completion was polled", n)
	}
	for range most {
		a.wait(1)
		if n := a.fill(wr); n != 1 {
			t.Errorf("%d slots came free with one completion", n)
		}
		drained(t, a.qp)
	}
}

// Slots of unsignaled requests come free when they are sent: nobody polls.
func unsignaledSlots(t *testing.T, w *world) {
	a, b := w.a, w.b
	wr := a.send(1, a.ah(b.end.IPv4), b.qp)
	wr.Flags = 0
	most, _ := a.granted()
	for range 10 {
		to(t, a.qp, verbs.QPStateSQD) // nothing is sent before the queue is full
		for i := range most {
			a.post(wr)
			b.receive(i % slots)
		}
		refused(t, a.qp.PostSend([]verbs.SendWR{wr}), unix.ENOMEM)
		to(t, a.qp, verbs.QPStateRTS)
		drained(t, a.qp)
		b.wait(most)
	}
	w.nothingElse()
}

func recvQueueFull(t *testing.T, w *world) {
	a, b := w.a, w.b
	wr := []verbs.RecvWR{{SGList: []verbs.SGE{b.piece(0, slotLen)}}}
	_, most := b.granted()
	for range most {
		check(t, b.qp.PostRecv(wr))
	}
	refused(t, b.qp.PostRecv(wr), unix.ENOMEM, "max_recv_wr")
	a.post(a.send(1, a.ah(b.end.IPv4), b.qp))
	a.expect(ok(1))
	w.settle() // it has arrived, and nobody has polled
	refused(t, b.qp.PostRecv(wr), unix.ENOMEM)
	b.expect(ok(0))
	check(t, b.qp.PostRecv(wr))
	refused(t, b.qp.PostRecv(wr), unix.ENOMEM)
}

// A CQ as large as all that can be outstanding never overruns, whatever is posted and
// polled when: a slot is held until its completion has been polled.
func cqNeverOverruns(t *testing.T, w *world) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	sends, receives := w.a.granted() // the flow's queue pair is like the station's
	f := &flow{station: w.a, peer: w.b, random: rand.New(rand.NewPCG(seed, 0)), cq: w.a.newCQ(sends + receives)}
	f.qp = w.a.newQPWith(verbs.QPInitAttr{SendCQ: f.cq, RecvCQ: f.cq, Cap: defaultCap()})
	check(t, f.qp.Activate(testQKey))
	f.own, f.other = w.a.ah(w.a.end.IPv4), w.a.ah(w.b.end.IPv4)
	for range 20000 {
		f.step()
	}
	drained(t, f.qp)
	f.count(f.waitOn(f.cq, f.sent-f.sendsDone)) // receives may be among them
	w.settle()
	f.count(completions(t, f.cq))
	if f.sent != f.sendsDone || f.receivesDone == 0 || f.receivesDone > f.received {
		t.Errorf("posted %d sends and %d receives, completed %d and %d", f.sent, f.received, f.sendsDone, f.receivesDone)
	}
}

// flow is a queue pair that posts and polls at random, and how much.
type flow struct {
	*station
	peer                                    *station
	random                                  *rand.Rand
	cq                                      *verbs.CQ
	qp                                      *verbs.QP
	own, other                              *verbs.AH
	sent, received, sendsDone, receivesDone int
}

func (f *flow) step() {
	switch f.random.IntN(5) {
	case 0, 1:
		wr := f.send(1, f.own, f.qp)
		wr.Flags = verbs.SendFlags(f.random.IntN(2)) * verbs.SendSignaled
		if f.random.IntN(2) == 0 {
			wr.AH, wr.RemoteQPN = f.other, f.peer.qp.Number()
		}
		if f.qp.PostSend([]verbs.SendWR{wr}) == nil && wr.Flags != 0 {
			f.sent++
		}
	case 2:
		if f.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{f.piece(0, slotLen)}}}) == nil {
			f.received++
		}
	case 3:
		runtime.Gosched()
		if f.random.IntN(8) == 0 {
			drained(f, f.qp)
		}
	case 4:
		wcs := make([]verbs.WC, 1+f.random.IntN(4))
		n, err := f.cq.Poll(wcs)
		check(f, err)
		f.count(wcs[:n])
	}
}

func (f *flow) count(wcs []verbs.WC) {
	for _, wc := range wcs {
		if wc.Opcode == verbs.WCRecv {
			f.receivesDone++
		} else {
			f.sendsDone++
		}
	}
}
