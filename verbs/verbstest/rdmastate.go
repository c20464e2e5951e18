package verbstest

import (
	"bytes"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var rdmaStateTests = []test{
	{name: "communication is established", run: commEst},
	{name: "a connected queue pair drains in SQD", run: connectedSQD},
	{name: "a connected queue pair changes in SQD", run: connectedChangeInSQD},
	{name: "a connected queue pair in ERR", run: connectedErr},
	{name: "a connected queue pair is reset", run: connectedReset},
	{name: "connected queue pairs share receives", run: connectedSRQ},
	{name: "a connected queue pair closes while its peer sends", run: connectedClose},
	{name: "what a connected queue pair's requests may be", run: connectedFlags},
}

func eventOf(kind verbs.EventType, qp *verbs.QP) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: kind, QP: qp}
}

// The first packet that comes in RTR says that the peer is in RTS. It is taken.
func commEst(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := &peers{w.a.peer(kind), w.b.peer(kind)}
		attr := p.b.connection(w.a.end.IPv4, p.a.qp.Number())
		for _, step := range []struct {
			state verbs.QPState
			mask  verbs.QPAttrMask
		}{{verbs.QPStateInit, masksOfInit}, {verbs.QPStateRTR, rtrMask(kind)}} {
			now := attr
			now.State = step.state
			check(t, p.b.qp.Modify(&now, step.mask))
		}
		p.a.connect(&p.b, nil)
		p.b.recv(1, 0, 100)
		p.b.recv(2, 0, 100)
		w.b.noEvent()
		send := p.a.request(verbs.WRSend, &p.b, 5)
		p.a.post(send, send)
		p.a.expect(ok(1), ok(1))
		p.b.expect(ok(1), ok(2))
		p.b.expectEvents(eventOf(verbs.EventCommEst, p.b.qp))
		p.b.noEvent()
		attr.State = verbs.QPStateRTS
		check(t, p.b.qp.Modify(&attr, rtsMask(kind)))
		p.a.recv(3, 0, 100)
		p.b.post(p.b.request(verbs.WRSend, &p.a, 5))
		p.b.expect(ok(1))
		p.a.expect(ok(3))
		p.a.noEvent() // it was in RTS
	}
}

// In SQD what has begun is finished, and the event says when it is; what is posted waits for RTS.
func connectedSQD(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := w.connect(kind, nil)
		for range 3 {
			toSQD(t, p.a.qp, true)
			p.a.expectEvents(sqDrained(p.a.qp))
			p.a.post(p.a.request(verbs.WRRDMAWrite, &p.b, 5000))
			w.nothingElse()
			to(t, p.a.qp, verbs.QPStateRTS)
			p.a.expect(ok(1))
		}
		if kind == verbs.QPTypeUC {
			continue
		}
		p.a.post(p.a.request(verbs.WRSend, &p.b, 5000)) // the peer has no receive
		w.settle()
		toSQD(t, p.a.qp, true)
		w.a.noEvent()
		p.b.recv(4, 0, 5000)
		p.a.expect(ok(1))
		p.b.expect(ok(4))
		p.a.expectEvents(sqDrained(p.a.qp))
		p.a.noEvent()
	}
}

// In SQD the way to the peer and other attributes may change. Requests take the new ones.
func connectedChangeInSQD(t *testing.T, w *world) {
	p := w.connect(verbs.QPTypeRC, nil)
	toSQD(t, p.a.qp, false)
	to(t, p.b.qp, verbs.QPStateSQD)
	for _, end := range []struct {
		qp *verbs.QP
		to *verbs.AHAttr
	}{{p.a.qp, w.a.route(w.b.end.IPv6)}, {p.b.qp, w.b.route(w.a.end.IPv6)}} {
		attr := verbs.QPAttr{AHAttr: *end.to, Timeout: 15, RetryCnt: 6, RNRRetry: 6, MaxRDAtomic: 2, MaxDestRDAtomic: 2, MinRNRTimer: 3}
		mask := verbs.QPAttrAV | verbs.QPAttrTimeout | verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic |
			verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
		check(t, end.qp.Modify(&attr, mask))
		got, _, err := end.qp.Query()
		check(t, err)
		if got.AHAttr != *end.to || got.Timeout != 15 || got.MaxDestRDAtomic != 2 || got.State != verbs.QPStateSQD || got.PathMTU != verbs.MTU256 {
			t.Errorf("%+v", got)
		}
		bad := verbs.QPAttr{AHAttr: *end.to}
		bad.AHAttr.GRH.DGID = gid(w.pair.Unreachable)
		refused(t, end.qp.Modify(&bad, verbs.QPAttrAV), unix.EINVAL) // of another IP version
		to(t, end.qp, verbs.QPStateRTS)
	}
	w.a.noEvent() // nobody asked for one
	copy(p.b.mr.Bytes(), pattern(1000, 4))
	p.a.post(p.a.request(verbs.WRRDMARead, &p.b, 1000))
	p.a.expect(ok(1))
	if !bytes.Equal(p.a.mr.Bytes()[:1000], pattern(1000, 4)) {
		t.Error("other bytes")
	}
}

// ERR flushes what is outstanding, begun or not, in order, and what is posted later.
func connectedErr(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := w.connect(kind, nil)
		p.a.recv(7, 0, 10)
		if kind == verbs.QPTypeUC {
			to(t, p.a.qp, verbs.QPStateSQD) // else they would be sent
		}
		for id := range 3 {
			wr := p.a.request(verbs.WRSend, &p.b, 5000) // RC: the peer has no receive
			wr.ID = uint64(id)
			p.a.post(wr)
		}
		w.settle()
		to(t, p.a.qp, verbs.QPStateErr)
		p.a.expect(flushed(0), flushed(1), flushed(2), flushed(7))
		p.a.post(p.a.request(verbs.WRRDMAWrite, &p.b, 1))
		p.a.expect(flushed(1))
		p.a.recv(8, 0, 10)
		p.a.expect(flushed(8))
		p.a.noEvent()
		w.nothingElse()
	}
}

// RESET forgets requests, completions and the peer. Connected again, both begin anew.
func connectedReset(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := w.connect(kind, nil)
		for range 3 {
			p.a.recv(7, 0, 10)
			p.a.post(p.a.request(verbs.WRSend, &p.b, 5000))
			to(t, p.a.qp, verbs.QPStateReset)
			to(t, p.b.qp, verbs.QPStateReset)
			w.nothingElse()
			p.a.connect(&p.b, func(a *verbs.QPAttr) { a.SQPSN = 77 })
			p.b.connect(&p.a, func(a *verbs.QPAttr) { a.RQPSN = 77 })
			copy(p.a.mr.Bytes(), pattern(700, 8))
			p.b.recv(1, 2000, 1000)
			p.a.post(p.a.request(verbs.WRSend, &p.b, 700))
			p.a.expect(ok(1))
			p.b.expect(ok(1))
			if !bytes.Equal(p.b.mr.Bytes()[2000:2700], pattern(700, 8)) {
				t.Error("other bytes")
			}
		}
	}
}

// Connected queue pairs take receives of an SRQ in turn. One that goes to ERR leaves them to the others.
func connectedSRQ(t *testing.T, w *world) {
	var all []*peers
	for range 3 {
		p := &peers{w.a.peer(verbs.QPTypeRC), peer{station: w.b}}
		p.b.mr, p.b.qp = w.b.mr, w.b.newQPWith(verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: w.b.cq, RecvCQ: w.b.cq, SRQ: w.b.srq, Cap: defaultCap()})
		p.a.connect(&p.b, nil)
		p.b.connect(&p.a, nil)
		all = append(all, p)
	}
	post := func(id int) {
		t.Helper()
		check(t, w.b.srq.PostRecv([]verbs.RecvWR{{ID: uint64(id), SGList: []verbs.SGE{w.b.piece(id, slotLen)}}}))
	}
	for round := range 4 {
		for i, p := range all {
			post(i)
			copy(p.a.mr.Bytes(), pattern(1500, byte(16*round+i)))
			p.a.post(p.a.request(verbs.WRSend, &p.b, 1500))
			p.a.expect(ok(1))
			if wc := p.b.expect(ok(uint64(i)))[0]; wc.QPN != p.b.qp.Number() || !bytes.Equal(w.b.slot(i)[:1500], pattern(1500, byte(16*round+i))) {
				t.Errorf("round %d, %d: %+v", round, i, wc)
			}
		}
	}
	post(5)
	to(t, all[0].b.qp, verbs.QPStateErr)
	w.b.expectEvents(eventOf(verbs.EventQPLastWQEReached, all[0].b.qp))
	all[1].a.post(all[1].a.request(verbs.WRSend, &all[1].b, 5))
	all[1].a.expect(ok(1))
	w.b.expect(ok(5))
}

// When Close returns, no byte of the peer's comes any more.
func connectedClose(t *testing.T, w *world) {
	for range 20 {
		p := w.connect(verbs.QPTypeRC, func(a *verbs.QPAttr) { a.Timeout, a.RetryCnt = 4, 1 })
		copy(p.a.mr.Bytes(), pattern(regionLen, 1))
		for range depth {
			p.a.post(p.a.request(verbs.WRRDMAWrite, &p.b, regionLen))
		}
		check(t, p.b.qp.Close())
		clear(p.b.mr.Bytes())
		p.a.wait(depth)
		if !bytes.Equal(p.b.mr.Bytes(), make([]byte, regionLen)) {
			t.Fatal("a closed queue pair has taken a write")
		}
		check(t, p.a.qp.Close())
	}
}

// Requests may be unsignaled, inline, fenced and solicited.
func connectedFlags(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := w.connect(kind, nil)
		for id := range 4 {
			p.b.recv(uint64(id), 100*id, 100)
		}
		copy(p.a.mr.Bytes(), "four")
		four := []verbs.SGE{p.a.mr.SGE(0, 4)}
		check(t, p.a.qp.PostSend([]verbs.SendWR{
			{ID: 1, Opcode: verbs.WRSend, SGList: four},
			{ID: 2, Opcode: verbs.WRSend, InlineData: []byte("inline"), Flags: verbs.SendInline},
			{ID: 3, Opcode: verbs.WRSend, SGList: four, Flags: verbs.SendInline | verbs.SendFence | verbs.SendSolicited},
			{ID: 4, Opcode: verbs.WRSend, Flags: verbs.SendSignaled},
		}))
		p.a.expect(ok(4))
		p.b.expect(ok(0), ok(1), ok(2), ok(3))
		for i, want := range []string{"four", "inline", "four"} {
			if got := string(p.b.mr.Bytes()[100*i:][:len(want)]); got != want {
				t.Errorf("%v: %q, want %q", kind, got, want)
			}
		}
		check(t, p.a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, InlineData: []byte("written"), Flags: verbs.SendInline, RKey: p.b.mr.RKey(), RemoteAddr: 50}}))
		drained(t, p.a.qp)
		w.settle()
		if got := string(p.b.mr.Bytes()[50:57]); got != "written" {
			t.Errorf("%v: %q", kind, got)
		}
	}
}
