package verbstest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
)

var rdmaErrorTests = []test{
	{name: "what a peer may not do", run: remoteErrors},
	{name: "what an unreliable peer may not do", run: unreliableErrors},
	{name: "own memory that may not be used", run: localErrors},
	{name: "a peer that does not answer", run: silentPeers},
	{name: "a peer without a receive", run: peerNotReady},
}

// Operations by what they do to the peer.
var (
	opsOfSend   = []verbs.Opcode{verbs.WRSend, verbs.WRSendWithImm}
	opsOfWrite  = []verbs.Opcode{verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm}
	opsOfRead   = []verbs.Opcode{verbs.WRRDMARead}
	opsOfAtomic = []verbs.Opcode{verbs.WRAtomicCmpAndSwp, verbs.WRAtomicFetchAndAdd}
	opsOfRDMA   = slices.Concat(opsOfWrite, opsOfRead)
	opsOfRemote = slices.Concat(opsOfRDMA, opsOfAtomic)
	opsOfAll    = slices.Concat(opsOfSend, opsOfRemote)
)

const recvID = 9 // of the peer's receive

// mistake is something that is wrong with a request, and what becomes of it at both ends.
type mistake struct {
	name      string
	ops       []verbs.Opcode
	attr      func(*verbs.QPAttr)              // of both queue pairs
	spoil     func(p *peers, wr *verbs.SendWR) // makes the mistake
	status    verbs.WCStatus                   // of the request
	recv      verbs.WCStatus                   // of the peer's receive, unless it is left
	event     verbs.EventType                  // at the peer; 0 for none
	leaves    bool                             // the peer's queue pair goes on, and so does its receive
	recvBytes int                              // the peer's receive; 0 stands for 100
}

const noEvent verbs.EventType = 0

// mistakes are what the specification has rows for (IBA 9.9.3, tables 60 and 61), each with what the
// requester and the responder make of it.
var mistakes = []mistake{
	{
		name: "wrong rkey", ops: opsOfRemote, spoil: func(_ *peers, wr *verbs.SendWR) { wr.RKey ^= 1 << 20 },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "rkey of another generation", ops: opsOfRemote, spoil: func(_ *peers, wr *verbs.SendWR) { wr.RKey = verbs.IncRKey(wr.RKey) },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "one byte behind the region", ops: opsOfRDMA, spoil: func(_ *peers, wr *verbs.SendWR) { wr.RemoteAddr += regionLen - 7 },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "behind the region", ops: opsOfRemote, spoil: func(_ *peers, wr *verbs.SendWR) { wr.RemoteAddr += regionLen },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "before the region", ops: opsOfRemote, spoil: func(_ *peers, wr *verbs.SendWR) { wr.RemoteAddr -= 8 },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "region without the right", ops: opsOfRemote, spoil: func(p *peers, wr *verbs.SendWR) { p.b.aim(wr, p.b.pd, without(wr.Opcode)) },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "queue pair without the right", ops: opsOfRemote, attr: func(a *verbs.QPAttr) { a.AccessFlags = 0 },
		status: verbs.WCRemInvReqErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPReqErr,
	},
	{
		name: "region of another PD", ops: opsOfRemote, spoil: func(p *peers, wr *verbs.SendWR) { p.b.aim(wr, p.b.anotherPD(), allAccess) },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "closed region", ops: opsOfRemote, spoil: func(p *peers, wr *verbs.SendWR) { check(p.b, p.b.aim(wr, p.b.pd, allAccess).Close()) },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "no bytes, and a bad key", ops: opsOfRDMA, spoil: func(_ *peers, wr *verbs.SendWR) { wr.RKey, wr.RemoteAddr, wr.SGList = 7, 7, nil },
		status: verbs.WCSuccess, leaves: true,
	},
	{
		name: "atomic that is not aligned", ops: opsOfAtomic, spoil: func(_ *peers, wr *verbs.SendWR) { wr.RemoteAddr += 4 },
		status: verbs.WCRemInvReqErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPReqErr,
	},
	{
		name: "longer than the receive", ops: opsOfSend, recvBytes: 7,
		status: verbs.WCRemInvReqErr, recv: verbs.WCLocLenErr,
	},
	{
		name: "receive to memory that is not there", ops: opsOfSend, recvBytes: -1,
		status: verbs.WCRemOpErr, recv: verbs.WCLocProtErr,
	},
	{
		name: "more reads and atomics than the peer answers", ops: slices.Concat(opsOfRead, opsOfAtomic), attr: func(a *verbs.QPAttr) { a.MaxDestRDAtomic = 0 },
		status: verbs.WCRemInvReqErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPReqErr,
	},
	{
		name: "key to invalidate that is none", ops: []verbs.Opcode{verbs.WRSendWithInv}, spoil: func(_ *peers, wr *verbs.SendWR) { wr.InvalidateRKey = 7 },
		status: verbs.WCRemInvReqErr, recv: verbs.WCRemInvReqErr,
	},
	{
		name: "key to invalidate that is a region's", ops: []verbs.Opcode{verbs.WRSendWithInv}, spoil: func(p *peers, wr *verbs.SendWR) { wr.InvalidateRKey = p.b.mr.RKey() },
		status: verbs.WCRemInvReqErr, recv: verbs.WCRemInvReqErr,
	},
	{
		name: "reads and atomics that are not to be outstanding", ops: slices.Concat(opsOfRead, opsOfAtomic), attr: func(a *verbs.QPAttr) { a.MaxRDAtomic = 0 },
		status: verbs.WCLocQPOpErr, leaves: true,
	},
}

// without is all access but what an operation needs.
func without(op verbs.Opcode) verbs.AccessFlags {
	switch {
	case slices.Contains(opsOfWrite, op):
		return allAccess &^ verbs.AccessRemoteWrite
	case slices.Contains(opsOfRead, op):
		return allAccess &^ verbs.AccessRemoteRead
	}
	return allAccess &^ verbs.AccessRemoteAtomic
}

// aim turns a request to another region of the peer's.
func (p *peer) aim(wr *verbs.SendWR, pd *verbs.PD, access verbs.AccessFlags) *verbs.MR {
	p.Helper()
	mr, err := pd.AllocMR(regionLen, verbs.AccessLocalWrite|access)
	check(p, err)
	wr.RKey, wr.RemoteAddr = mr.RKey(), mr.IOVA()
	return mr
}

func (s *station) anotherPD() *verbs.PD {
	s.Helper()
	pd, err := s.ctx.AllocPD()
	check(s, err)
	return pd
}

// awaits posts the peer's receive for a mistake.
func (m *mistake) awaits(p *peer) {
	switch m.recvBytes {
	case -1:
		check(p, p.qp.PostRecv([]verbs.RecvWR{{ID: recvID, SGList: []verbs.SGE{{Addr: 1, Length: 100, LKey: 7}}}}))
	case 0:
		p.recv(recvID, 1000, 100)
	default:
		p.recv(recvID, 1000, m.recvBytes)
	}
}

// make posts the request with the mistake, of 8 bytes, and another behind it.
func (m *mistake) make(p *peers, op verbs.Opcode) {
	m.awaits(&p.b)
	wr := p.a.request(op, &p.b, 8)
	if m.spoil != nil {
		m.spoil(p, &wr)
	}
	behind := p.a.request(verbs.WRRDMAWrite, &p.b, 0)
	behind.ID = 2
	copy(p.a.mr.Bytes(), "whatever")
	p.a.post(wr, behind)
}

// Each mistake has the status that the specification gives it, at both ends. Requests behind it are
// flushed, and the peer's memory stays as it was.
func remoteErrors(t *testing.T, w *world) {
	for _, m := range mistakes {
		for _, op := range m.ops {
			t.Run(fmt.Sprintf("%s, %v", m.name, op), func(t *testing.T) {
				p := w.connect(verbs.QPTypeRC, m.attr)
				copy(p.b.mr.Bytes(), pattern(regionLen, 5))
				m.make(p, op)
				behind := verbs.WCWRFlushErr
				if m.status == verbs.WCSuccess {
					behind = verbs.WCSuccess
				}
				p.a.expect(outcome{1, m.status}, outcome{2, behind})
				if m.status == verbs.WCSuccess && op == verbs.WRRDMAWriteWithImm {
					p.b.expect(ok(recvID))
				}
				m.judge(t, p, op)
				check(t, p.a.qp.Close())
				check(t, p.b.qp.Close())
			})
		}
	}
}

// judge looks at what the mistake has done to the peer.
func (m *mistake) judge(t *testing.T, p *peers, op verbs.Opcode) {
	t.Helper()
	recv, event := m.recv, m.event
	if op == verbs.WRRDMAWriteWithImm && m.status == verbs.WCRemAccessErr {
		recv, event = m.status, noEvent // it has begun to use the receive, whose completion tells
	}
	if !m.leaves {
		p.b.expect(outcome{recvID, recv})
	}
	if event != noEvent {
		p.b.expectEvents(verbs.AsyncEvent{Type: event, QP: p.b.qp})
	}
	p.b.noEvent()
	want := verbs.QPStateErr
	if m.leaves {
		want = verbs.QPStateRTS
	}
	if got := stateOf(t, p.b.qp); got != want {
		t.Errorf("the peer is in %v, want %v", got, want)
	}
	if !bytes.Equal(p.b.mr.Bytes()[:1000], pattern(regionLen, 5)[:1000]) {
		t.Error("the peer's memory has changed")
	}
}

// UC tells nobody: the message is dropped, and the next one is taken.
func unreliableErrors(t *testing.T, w *world) {
	for _, m := range mistakes {
		for _, op := range m.ops {
			if !slices.Contains(opsOfWrite, op) || m.status == verbs.WCSuccess {
				continue
			}
			t.Run(fmt.Sprintf("%s, %v", m.name, op), func(t *testing.T) {
				p := w.connect(verbs.QPTypeUC, m.attr)
				copy(p.b.mr.Bytes(), pattern(regionLen, 5))
				m.make(p, op)
				p.a.expect(ok(1), ok(2))
				p.a.post(p.a.request(verbs.WRSend, &p.b, 8))
				p.a.expect(ok(1))
				if p.b.expect(ok(recvID)); string(p.b.mr.Bytes()[1000:1008]) != "whatever" {
					t.Errorf("the message behind it: %q", p.b.mr.Bytes()[1000:1008])
				}
				m := mistake{leaves: true}
				m.judge(t, p, op)
				check(t, p.a.qp.Close())
				check(t, p.b.qp.Close())
			})
		}
	}
}

// Own memory is checked before anything is sent, and an answer is written to it only where it may be.
func localErrors(t *testing.T, w *world) {
	for _, row := range []struct {
		name string
		ops  []verbs.Opcode
		sge  func(p *peer) verbs.SGE
	}{
		{"unknown lkey", opsOfAll, func(*peer) verbs.SGE { return verbs.SGE{Length: 8, LKey: 7} }},
		{"behind the region", opsOfAll, func(p *peer) verbs.SGE { return p.mr.SGE(regionLen-7, 8) }},
		{"region of another PD", opsOfAll, func(p *peer) verbs.SGE {
			return p.aim(&verbs.SendWR{}, p.anotherPD(), 0).SGE(0, 8)
		}},
		{"answer to memory that may only be read", slices.Concat(opsOfRead, opsOfAtomic), func(p *peer) verbs.SGE {
			mr, err := p.pd.AllocMR(8, verbs.AccessRemoteRead)
			check(p, err)
			return mr.SGE(0, 8)
		}},
	} {
		for _, op := range row.ops {
			t.Run(fmt.Sprintf("%s, %v", row.name, op), func(t *testing.T) {
				p := w.connect(verbs.QPTypeRC, nil)
				copy(p.b.mr.Bytes(), pattern(regionLen, 5))
				m := mistake{leaves: true, spoil: func(p *peers, wr *verbs.SendWR) { wr.SGList = []verbs.SGE{row.sge(&p.a)} }}
				m.make(p, op)
				p.a.expect(outcome{1, verbs.WCLocProtErr}, flushed(2))
				m.judge(t, p, op)
				if got := stateOf(t, p.a.qp); got != verbs.QPStateErr {
					t.Errorf("state %v", got)
				}
				check(t, p.a.qp.Close())
				check(t, p.b.qp.Close())
			})
		}
	}
}

// A peer that does not answer, for whatever reason, costs the retries and is then an error.
func silentPeers(t *testing.T, w *world) {
	for name, silence := range map[string]func(p *peers){
		"it is closed":            func(p *peers) { check(p.b, p.b.qp.Close()) },
		"it is in RESET":          func(p *peers) { to(p.b, p.b.qp, verbs.QPStateReset) },
		"it is in ERR":            func(p *peers) { to(p.b, p.b.qp, verbs.QPStateErr) },
		"it has another peer":     func(p *peers) { p.b.reconnect(func(a *verbs.QPAttr) { a.AHAttr = *w.b.route(w.a.end.IPv6) }) },
		"its PSN is half a space": func(p *peers) { p.b.reconnect(func(a *verbs.QPAttr) { a.RQPSN ^= 1 << 23 }) },
	} {
		for _, op := range opsOfAll {
			t.Run(fmt.Sprintf("%s, %v", name, op), func(t *testing.T) {
				p := w.connect(verbs.QPTypeRC, func(a *verbs.QPAttr) { a.Timeout, a.RetryCnt = 4, 2 })
				silence(p)
				wr := p.a.request(op, &p.b, 8)
				p.a.post(wr, wr)
				p.a.expect(outcome{1, verbs.WCRetryExcErr}, flushed(1))
			})
		}
	}
}

// reconnect gives a queue pair that is connected to the other station's other attributes.
func (p *peer) reconnect(change func(*verbs.QPAttr)) {
	p.Helper()
	attr, _, err := p.qp.Query()
	check(p, err)
	to(p, p.qp, verbs.QPStateReset)
	change(&attr)
	check(p, p.qp.Connect(&attr))
}

// A peer without a receive asks to be tried again: as often as rnr_retry says, or until it has one.
func peerNotReady(t *testing.T, w *world) {
	for _, op := range []verbs.Opcode{verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWriteWithImm} {
		for _, retries := range []uint8{0, 1, 3} {
			p := w.connect(verbs.QPTypeRC, func(a *verbs.QPAttr) { a.RNRRetry = retries })
			wr := p.a.request(op, &p.b, 300)
			p.a.post(wr, wr)
			p.a.expect(outcome{1, verbs.WCRNRRetryExcErr}, flushed(1))
			if got := stateOf(t, p.b.qp); got != verbs.QPStateRTS {
				t.Errorf("%v: the peer is in %v", op, got)
			}
		}
		p := w.connect(verbs.QPTypeRC, nil) // 7 is for ever
		copy(p.a.mr.Bytes(), pattern(300, 2))
		wr := p.a.request(op, &p.b, 300)
		p.a.post(wr, wr)
		w.settle() // it has been told
		p.b.recv(1, 0, 300)
		p.b.recv(2, 0, 300)
		p.a.expect(ok(1), ok(1))
		p.b.expect(ok(1), ok(2))
		if !bytes.Equal(p.b.mr.Bytes()[:300], pattern(300, 2)) {
			t.Errorf("%v: other bytes", op)
		}
	}
}
