// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var rdmaStateTests = []rig.Test{
	{Name: "communication is established", Run: commEst},
	{Name: "a connected queue pair drains in SQD", Run: connectedSQD},
	{Name: "a connected queue pair changes in SQD", Run: connectedChangeInSQD},
	{Name: "a connected queue pair in ERR", Run: connectedErr},
	{Name: "a connected queue pair is reset", Run: connectedReset},
	{Name: "connected queue pairs share receives", Run: connectedSRQ},
	{Name: "a connected queue pair closes while its peer sends", Run: connectedClose},
	{Name: "flags of a connected queue pair's requests", Run: connectedFlags},
}

func eventOf(kind verbs.EventType, qp *verbs.QP) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: kind, QP: qp}
}

// commEst checks that the first packet that arrives in RTR causes an event, and is received.
func commEst(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := &rig.Peers{A: w.A.Peer(kind), B: w.B.Peer(kind)}
		attr := p.B.Connection(w.A.End.IPv4, p.A.QP.Number())
		for _, step := range []struct {
			state verbs.QPState
			mask  verbs.QPAttrMask
		}{{verbs.QPStateInit, masksOfInit}, {verbs.QPStateRTR, rtrMask(kind)}} {
			now := attr
			now.State = step.state
			rig.Check(t, p.B.QP.Modify(&now, step.mask))
		}
		p.A.Connect(&p.B, nil)
		p.B.Recv(1, 0, 100)
		p.B.Recv(2, 0, 100)
		w.B.NoEvent()
		send := p.A.Request(verbs.WRSend, &p.B, 5)
		p.A.Post(send, send)
		p.A.Expect(rig.OK(1), rig.OK(1))
		p.B.Expect(rig.OK(1), rig.OK(2))
		p.B.ExpectEvents(eventOf(verbs.EventCommEst, p.B.QP))
		p.B.NoEvent()
		attr.State = verbs.QPStateRTS
		rig.Check(t, p.B.QP.Modify(&attr, rtsMask(kind)))
		p.A.Recv(3, 0, 100)
		p.B.Post(p.B.Request(verbs.WRSend, &p.A, 5))
		p.B.Expect(rig.OK(1))
		p.A.Expect(rig.OK(3))
		p.A.NoEvent() // the queue pair was in RTS
	}
}

// connectedSQD checks that SQD completes the requests in progress, that an event reports this, and that other requests
// wait for RTS.
func connectedSQD(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := w.Connect(kind, nil)
		for range 3 {
			toSQD(t, p.A.QP, true)
			p.A.ExpectEvents(sqDrained(p.A.QP))
			p.A.Post(p.A.Request(verbs.WRRDMAWrite, &p.B, 5000))
			w.NothingElse()
			rig.To(t, p.A.QP, verbs.QPStateRTS)
			p.A.Expect(rig.OK(1))
		}
		if kind == verbs.QPTypeUC {
			continue
		}
		p.A.Post(p.A.Request(verbs.WRSend, &p.B, 5000)) // the peer has no receive
		w.Settle()
		toSQD(t, p.A.QP, true)
		w.A.NoEvent()
		p.B.Recv(4, 0, 5000)
		p.A.Expect(rig.OK(1))
		p.B.Expect(rig.OK(4))
		p.A.ExpectEvents(sqDrained(p.A.QP))
		p.A.NoEvent()
	}
}

// connectedChangeInSQD changes the address vector and other attributes in SQD. Later requests must use them.
func connectedChangeInSQD(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	toSQD(t, p.A.QP, false)
	rig.To(t, p.B.QP, verbs.QPStateSQD)
	for _, end := range []struct {
		qp *verbs.QP
		to *verbs.AHAttr
	}{{p.A.QP, w.A.Route(w.B.End.IPv6)}, {p.B.QP, w.B.Route(w.A.End.IPv6)}} {
		attr := verbs.QPAttr{AHAttr: *end.to, Timeout: 15, RetryCnt: 6, RNRRetry: 6, MaxRDAtomic: 2, MaxDestRDAtomic: 2, MinRNRTimer: 3}
		mask := verbs.QPAttrAV | verbs.QPAttrTimeout | verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic |
			verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
		rig.Check(t, end.qp.Modify(&attr, mask))
		got, _, err := end.qp.Query()
		rig.Check(t, err)
		if got.AHAttr != *end.to || got.Timeout != 15 || got.MaxDestRDAtomic != 2 || got.State != verbs.QPStateSQD || got.PathMTU != verbs.MTU256 {
			t.Errorf("%+v", got)
		}
		bad := verbs.QPAttr{AHAttr: *end.to}
		bad.AHAttr.GRH.DGID = rig.GID(w.Pair.Unreachable)
		rig.Refused(t, end.qp.Modify(&bad, verbs.QPAttrAV), unix.EINVAL) // the address has another IP version
		rig.To(t, end.qp, verbs.QPStateRTS)
	}
	w.A.NoEvent() // no event was requested
	copy(p.B.MR.Bytes(), rig.Pattern(1000, 4))
	p.A.Post(p.A.Request(verbs.WRRDMARead, &p.B, 1000))
	p.A.Expect(rig.OK(1))
	if !bytes.Equal(p.A.MR.Bytes()[:1000], rig.Pattern(1000, 4)) {
		t.Error("the bytes differ")
	}
}

// connectedErr checks that ERR flushes all outstanding requests in order, and requests that are posted later.
func connectedErr(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := w.Connect(kind, nil)
		p.A.Recv(7, 0, 10)
		if kind == verbs.QPTypeUC {
			rig.To(t, p.A.QP, verbs.QPStateSQD) // so that the requests are not sent
		}
		for id := range 3 {
			wr := p.A.Request(verbs.WRSend, &p.B, 5000) // RC: the peer has no receive
			wr.ID = uint64(id)
			p.A.Post(wr)
		}
		w.Settle()
		rig.To(t, p.A.QP, verbs.QPStateErr)
		p.A.Expect(rig.Flushed(0), rig.Flushed(1), rig.Flushed(2), rig.Flushed(7))
		p.A.Post(p.A.Request(verbs.WRRDMAWrite, &p.B, 1))
		p.A.Expect(rig.Flushed(1))
		p.A.Recv(8, 0, 10)
		p.A.Expect(rig.Flushed(8))
		p.A.NoEvent()
		w.NothingElse()
	}
}

// connectedReset checks that RESET discards requests, completions and the connection, and that both queue pairs can be
// connected again.
func connectedReset(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := w.Connect(kind, nil)
		for n := range uint32(3) {
			p.A.Recv(7, 0, 10)
			p.A.Post(p.A.Request(verbs.WRSend, &p.B, 5000))
			rig.To(t, p.A.QP, verbs.QPStateReset)
			rig.To(t, p.B.QP, verbs.QPStateReset)
			w.NothingElse()
			p.A.Connect(&p.B, rig.Ahead(n+1))
			p.B.Connect(&p.A, rig.Ahead(n+1))
			copy(p.A.MR.Bytes(), rig.Pattern(700, 8))
			p.B.Recv(1, 2000, 1000)
			p.A.Post(p.A.Request(verbs.WRSend, &p.B, 700))
			p.A.Expect(rig.OK(1))
			p.B.Expect(rig.OK(1))
			if !bytes.Equal(p.B.MR.Bytes()[2000:2700], rig.Pattern(700, 8)) {
				t.Error("the bytes differ")
			}
		}
	}
}

// connectedSRQ checks that several connected queue pairs can share an SRQ, and that a queue pair in ERR leaves its
// receives to the others.
func connectedSRQ(t *testing.T, w *rig.World) {
	var all []*rig.Peers
	for range 3 {
		p := &rig.Peers{A: w.A.Peer(verbs.QPTypeRC), B: rig.Peer{Station: w.B}}
		p.B.MR, p.B.QP = w.B.MR, w.B.NewQPWith(verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: w.B.CQ, RecvCQ: w.B.CQ, SRQ: w.B.SRQ, Cap: rig.DefaultCap()})
		p.A.Connect(&p.B, nil)
		p.B.Connect(&p.A, nil)
		all = append(all, p)
	}
	post := func(id int) {
		t.Helper()
		rig.Check(t, w.B.SRQ.PostRecv([]verbs.RecvWR{{ID: uint64(id), SGList: []verbs.SGE{w.B.Piece(id, rig.SlotLen)}}}))
	}
	for round := range 4 {
		for i, p := range all {
			post(i)
			copy(p.A.MR.Bytes(), rig.Pattern(1500, byte(16*round+i)))
			p.A.Post(p.A.Request(verbs.WRSend, &p.B, 1500))
			p.A.Expect(rig.OK(1))
			if wc := p.B.Expect(rig.OK(uint64(i)))[0]; wc.QPN != p.B.QP.Number() || !bytes.Equal(w.B.Slot(i)[:1500], rig.Pattern(1500, byte(16*round+i))) {
				t.Errorf("round %d, %d: %+v", round, i, wc)
			}
		}
	}
	post(5)
	rig.To(t, all[0].B.QP, verbs.QPStateErr)
	w.B.ExpectEvents(eventOf(verbs.EventQPLastWQEReached, all[0].B.QP))
	all[1].A.Post(all[1].A.Request(verbs.WRSend, &all[1].B, 5))
	all[1].A.Expect(rig.OK(1))
	w.B.Expect(rig.OK(5))
}

// connectedClose checks that the peer cannot write to memory after Close has returned.
func connectedClose(t *testing.T, w *rig.World) {
	for range 20 {
		p := w.Connect(verbs.QPTypeRC, func(a *verbs.QPAttr) { a.Timeout, a.RetryCnt = 4, 1 })
		copy(p.A.MR.Bytes(), rig.Pattern(rig.RegionLen, 1))
		for range rig.Depth {
			p.A.Post(p.A.Request(verbs.WRRDMAWrite, &p.B, rig.RegionLen))
		}
		rig.Check(t, p.B.QP.Close())
		clear(p.B.MR.Bytes())
		p.A.Wait(rig.Depth)
		if !bytes.Equal(p.B.MR.Bytes(), make([]byte, rig.RegionLen)) {
			t.Fatal("a closed queue pair has executed a WRITE")
		}
		rig.Check(t, p.A.QP.Close())
	}
}

// connectedFlags checks unsignaled, inline, fenced and solicited requests.
func connectedFlags(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := w.Connect(kind, nil)
		for id := range 4 {
			p.B.Recv(uint64(id), 100*id, 100)
		}
		copy(p.A.MR.Bytes(), "four")
		four := []verbs.SGE{p.A.MR.SGE(0, 4)}
		rig.Check(t, p.A.QP.PostSend([]verbs.SendWR{
			{ID: 1, Opcode: verbs.WRSend, SGList: four},
			{ID: 2, Opcode: verbs.WRSend, InlineData: []byte("inline"), Flags: verbs.SendInline},
			{ID: 3, Opcode: verbs.WRSend, SGList: four, Flags: verbs.SendInline | verbs.SendFence | verbs.SendSolicited},
			{ID: 4, Opcode: verbs.WRSend, Flags: verbs.SendSignaled},
		}))
		p.A.Expect(rig.OK(4))
		p.B.Expect(rig.OK(0), rig.OK(1), rig.OK(2), rig.OK(3))
		for i, want := range []string{"four", "inline", "four"} {
			if got := string(p.B.MR.Bytes()[100*i:][:len(want)]); got != want {
				t.Errorf("%v: %q, want %q", kind, got, want)
			}
		}
		rig.Check(t, p.A.QP.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, InlineData: []byte("written"), Flags: verbs.SendInline, RKey: p.B.MR.RKey(), RemoteAddr: 50}}))
		rig.Drained(t, p.A.QP)
		w.Settle()
		if got := string(p.B.MR.Bytes()[50:57]); got != "written" {
			t.Errorf("%v: %q", kind, got)
		}
	}
}
