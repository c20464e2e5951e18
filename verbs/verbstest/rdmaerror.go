// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var rdmaErrorTests = []rig.Test{
	{Name: "operations that a peer refuses", Run: remoteErrors},
	{Name: "what an unreliable peer may not do", Run: unreliableErrors},
	{Name: "keys that cannot be invalidated", Run: notInvalidated},
	{Name: "own memory that may not be used", Run: localErrors},
	{Name: "a peer that does not answer", Run: silentPeers},
	{Name: "a peer without a receive", Run: peerNotReady},
}

const recvID = 9 // ID of the peer's receive

// badRequest is an error in a request and its effect at both ends.
type badRequest struct {
	name      string
	ops       []verbs.Opcode
	attr      func(*verbs.QPAttr)                  // changes the attributes of both queue pairs
	spoil     func(p *rig.Peers, wr *verbs.SendWR) // inserts the error
	status    verbs.WCStatus                       // status of the request
	recv      verbs.WCStatus                       // status of the peer's receive, unless leaves is set
	event     verbs.EventType                      // event at the peer; 0 for none
	leaves    bool                                 // the peer's queue pair stays in RTS, and its receive outstanding
	recvBytes int                                  // length of the peer's receive; 0 means 100, -1 an invalid SGE
}

// badRequests contains the errors of the specification (IBA 9.9.3, tables 60 and 61), with their effects at the
// requester and the responder.
var badRequests = []badRequest{
	{
		name: "wrong rkey", ops: rig.OpsOfRemote, spoil: func(_ *rig.Peers, wr *verbs.SendWR) { wr.RKey ^= 1 << 20 },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "rkey of another generation", ops: rig.OpsOfRemote, spoil: func(_ *rig.Peers, wr *verbs.SendWR) { wr.RKey = verbs.IncRKey(wr.RKey) },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "one byte behind the region", ops: rig.OpsOfRDMA, spoil: func(_ *rig.Peers, wr *verbs.SendWR) { wr.RemoteAddr += rig.RegionLen - 7 },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "behind the region", ops: rig.OpsOfRemote, spoil: func(_ *rig.Peers, wr *verbs.SendWR) { wr.RemoteAddr += rig.RegionLen },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "before the region", ops: rig.OpsOfRemote, spoil: func(_ *rig.Peers, wr *verbs.SendWR) { wr.RemoteAddr -= 8 },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "region without the right", ops: rig.OpsOfRemote, spoil: func(p *rig.Peers, wr *verbs.SendWR) { p.B.Aim(wr, p.B.PD, without(wr.Opcode)) },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "queue pair without the right", ops: rig.OpsOfRemote, attr: func(a *verbs.QPAttr) { a.AccessFlags = 0 },
		status: verbs.WCRemInvReqErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPReqErr,
	},
	{
		name: "region of another PD", ops: rig.OpsOfRemote, spoil: func(p *rig.Peers, wr *verbs.SendWR) { p.B.Aim(wr, p.B.AnotherPD(), rig.AllAccess) },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "closed region", ops: rig.OpsOfRemote, spoil: func(p *rig.Peers, wr *verbs.SendWR) { rig.Check(p.B, p.B.Aim(wr, p.B.PD, rig.AllAccess).Close()) },
		status: verbs.WCRemAccessErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPAccessErr,
	},
	{
		name: "no bytes, and a bad key", ops: rig.OpsOfRDMA, spoil: func(_ *rig.Peers, wr *verbs.SendWR) { wr.RKey, wr.RemoteAddr, wr.SGList = 7, 7, nil },
		status: verbs.WCSuccess, leaves: true,
	},
	{
		name: "atomic that is not aligned", ops: rig.OpsOfAtomic, spoil: func(_ *rig.Peers, wr *verbs.SendWR) { wr.RemoteAddr += 4 },
		status: verbs.WCRemInvReqErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPReqErr,
	},
	{
		name: "longer than the receive", ops: rig.OpsOfSend, recvBytes: 7,
		status: verbs.WCRemInvReqErr, recv: verbs.WCLocLenErr,
	},
	{
		name: "receive to memory that is not there", ops: rig.OpsOfSend, recvBytes: -1,
		status: verbs.WCRemOpErr, recv: verbs.WCLocProtErr,
	},
	{
		name: "more reads and atomics than the peer answers", ops: slices.Concat(rig.OpsOfRead, rig.OpsOfAtomic), attr: func(a *verbs.QPAttr) { a.MaxDestRDAtomic = 0 },
		status: verbs.WCRemInvReqErr, recv: verbs.WCWRFlushErr, event: verbs.EventQPReqErr,
	},
	{
		name: "reads and atomics that are not to be outstanding", ops: slices.Concat(rig.OpsOfRead, rig.OpsOfAtomic), attr: func(a *verbs.QPAttr) { a.MaxRDAtomic = 0 },
		status: verbs.WCLocQPOpErr, leaves: true,
	},
}

// without returns all access flags except the one that an operation requires.
func without(op verbs.Opcode) verbs.AccessFlags {
	switch {
	case slices.Contains(rig.OpsOfWrite, op):
		return rig.AllAccess &^ verbs.AccessRemoteWrite
	case slices.Contains(rig.OpsOfRead, op):
		return rig.AllAccess &^ verbs.AccessRemoteRead
	}
	return rig.AllAccess &^ verbs.AccessRemoteAtomic
}

// awaits posts the peer's receive for an invalid request.
func (m *badRequest) awaits(p *rig.Peer) {
	switch m.recvBytes {
	case -1:
		rig.Check(p, p.QP.PostRecv([]verbs.RecvWR{{ID: recvID, SGList: []verbs.SGE{{Addr: 1, Length: 100, LKey: 7}}}}))
	case 0:
		p.Recv(recvID, 1000, 100)
	default:
		p.Recv(recvID, 1000, m.recvBytes)
	}
}

// make posts the invalid request of 8 bytes, and another request.
func (m *badRequest) make(p *rig.Peers, op verbs.Opcode) {
	m.awaits(&p.B)
	wr := p.A.Request(op, &p.B, 8)
	if m.spoil != nil {
		m.spoil(p, &wr)
	}
	behind := p.A.Request(verbs.WRRDMAWrite, &p.B, 0)
	behind.ID = 2
	copy(p.A.MR.Bytes(), "whatever")
	p.A.Post(wr, behind)
}

// remoteErrors checks that each error has the specified status at both ends, that later requests are flushed, and that
// the peer's memory does not change.
func remoteErrors(t *testing.T, w *rig.World) {
	for _, m := range badRequests {
		for _, op := range m.ops {
			t.Run(fmt.Sprintf("%s, %v", m.name, op), func(t *testing.T) {
				p := w.Connect(verbs.QPTypeRC, m.attr)
				copy(p.B.MR.Bytes(), rig.Pattern(rig.RegionLen, 5))
				m.make(p, op)
				behind := verbs.WCWRFlushErr
				if m.status == verbs.WCSuccess {
					behind = verbs.WCSuccess
				}
				p.A.Expect(rig.Ended(1, m.status), rig.Ended(2, behind))
				if m.status == verbs.WCSuccess && op == verbs.WRRDMAWriteWithImm {
					p.B.Expect(rig.OK(recvID))
				}
				m.judge(t, p, op)
				rig.Check(t, p.A.QP.Close())
				rig.Check(t, p.B.QP.Close())
			})
		}
	}
}

// judge checks the effect of the error on the peer.
func (m *badRequest) judge(t *testing.T, p *rig.Peers, op verbs.Opcode) {
	t.Helper()
	recv, event := m.recv, m.event
	if op == verbs.WRRDMAWriteWithImm && m.status == verbs.WCRemAccessErr {
		recv, event = verbs.WCLocAccessErr, rig.NoEvent // the receive was consumed, and its completion reports the error (IBA 11.6.2)
	}
	if !m.leaves {
		p.B.Expect(rig.Ended(recvID, recv))
	}
	if event != rig.NoEvent {
		p.B.ExpectEvents(verbs.AsyncEvent{Type: event, QP: p.B.QP})
	}
	p.B.NoEvent()
	want := verbs.QPStateErr
	if m.leaves {
		want = verbs.QPStateRTS
	}
	if got := rig.StateOf(t, p.B.QP); got != want {
		t.Errorf("the peer is in %v, want %v", got, want)
	}
	if !bytes.Equal(p.B.MR.Bytes()[:1000], rig.Pattern(rig.RegionLen, 5)[:1000]) {
		t.Error("the peer's memory has changed")
	}
}

// unreliableErrors checks that UC reports no error: the message is dropped, and the next one is received.
func unreliableErrors(t *testing.T, w *rig.World) {
	for _, m := range badRequests {
		for _, op := range m.ops {
			if !slices.Contains(rig.OpsOfWrite, op) || m.status == verbs.WCSuccess {
				continue
			}
			t.Run(fmt.Sprintf("%s, %v", m.name, op), func(t *testing.T) {
				p := w.Connect(verbs.QPTypeUC, m.attr)
				copy(p.B.MR.Bytes(), rig.Pattern(rig.RegionLen, 5))
				m.make(p, op)
				p.A.Expect(rig.OK(1), rig.OK(2))
				p.A.Post(p.A.Request(verbs.WRSend, &p.B, 8))
				p.A.Expect(rig.OK(1))
				if p.B.Expect(rig.OK(recvID)); string(p.B.MR.Bytes()[1000:1008]) != "whatever" {
					t.Errorf("the next message: %q", p.B.MR.Bytes()[1000:1008])
				}
				m := badRequest{leaves: true}
				m.judge(t, p, op)
				rig.Check(t, p.A.QP.Close())
				rig.Check(t, p.B.QP.Close())
			})
		}
	}
}

// notInvalidated checks that a SEND with a key that the peer cannot invalidate is acknowledged (class J): the receive
// completes with an error, and the peer's queue pair changes to ERR without a NAK. A local invalidate request of such a
// key fails with a memory management error.
func notInvalidated(t *testing.T, w *rig.World) {
	another := w.Connect(verbs.QPTypeRC, nil)
	for name, keyOf := range map[string]func(p *rig.Peer) verbs.RKey{
		"none":                          func(*rig.Peer) verbs.RKey { return 7 },
		"a region's":                    func(p *rig.Peer) verbs.RKey { return p.MR.RKey() },
		"a window's of type 1":          func(p *rig.Peer) verbs.RKey { return boundKey(p, verbs.MWType1, p) },
		"a window's, of another":        func(p *rig.Peer) verbs.RKey { return boundKey(p, verbs.MWType2, &another.B) },
		"a window's that is not bound":  func(p *rig.Peer) verbs.RKey { return p.Window(verbs.MWType2).RKey() },
		"a window's, of another number": func(p *rig.Peer) verbs.RKey { return verbs.IncRKey(boundKey(p, verbs.MWType2, p)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := w.Connect(verbs.QPTypeRC, nil)
			copy(p.B.MR.Bytes(), rig.Pattern(rig.RegionLen, 5))
			p.B.Recv(recvID, 1000, 100)
			copy(p.A.MR.Bytes(), "arrived")
			wr := p.A.Request(verbs.WRSendWithInv, &p.B, 7)
			wr.InvalidateRKey = keyOf(&p.B)
			p.A.Post(wr)
			p.A.Expect(rig.OK(1))
			m := badRequest{recv: verbs.WCRemInvReqErr}
			m.judge(t, p, verbs.WRSendWithInv)
			if string(p.B.MR.Bytes()[1000:1007]) != "arrived" {
				t.Error("the message has not arrived")
			}
			p.Again()
			p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRLocalInv, InvalidateRKey: wr.InvalidateRKey})
			p.B.Expect(rig.Ended(1, verbs.WCMWBindErr))
		})
	}
}

// boundKey returns the key of a window of a peer's region that a queue pair has bound.
func boundKey(p *rig.Peer, kind verbs.MWType, by *rig.Peer) verbs.RKey {
	p.Helper()
	mw := p.Window(kind)
	by.Post(p.Bind(mw, 0, 10, verbs.AccessRemoteRead))
	by.Expect(rig.OK(1))
	return mw.RKey()
}

// localErrors checks that local memory is checked before a request is sent, and before response data is written.
func localErrors(t *testing.T, w *rig.World) {
	for _, row := range []struct {
		name string
		ops  []verbs.Opcode
		sge  func(p *rig.Peer) verbs.SGE
	}{
		{"unknown lkey", rig.OpsOfAll, func(*rig.Peer) verbs.SGE { return verbs.SGE{Length: 8, LKey: 7} }},
		{"behind the region", rig.OpsOfAll, func(p *rig.Peer) verbs.SGE { return p.MR.SGE(rig.RegionLen-7, 8) }},
		{"region of another PD", rig.OpsOfAll, func(p *rig.Peer) verbs.SGE {
			return p.Aim(&verbs.SendWR{}, p.AnotherPD(), 0).SGE(0, 8)
		}},
		{"answer to memory that may only be read", slices.Concat(rig.OpsOfRead, rig.OpsOfAtomic), func(p *rig.Peer) verbs.SGE {
			mr, err := p.PD.AllocMR(8, verbs.AccessRemoteRead)
			rig.Check(p, err)
			return mr.SGE(0, 8)
		}},
	} {
		for _, op := range row.ops {
			t.Run(fmt.Sprintf("%s, %v", row.name, op), func(t *testing.T) {
				p := w.Connect(verbs.QPTypeRC, nil)
				copy(p.B.MR.Bytes(), rig.Pattern(rig.RegionLen, 5))
				m := badRequest{leaves: true, spoil: func(p *rig.Peers, wr *verbs.SendWR) { wr.SGList = []verbs.SGE{row.sge(&p.A)} }}
				m.make(p, op)
				p.A.Expect(rig.Ended(1, verbs.WCLocProtErr), rig.Flushed(2))
				m.judge(t, p, op)
				if got := rig.StateOf(t, p.A.QP); got != verbs.QPStateErr {
					t.Errorf("state %v", got)
				}
				rig.Check(t, p.A.QP.Close())
				rig.Check(t, p.B.QP.Close())
			})
		}
	}
}

// silentPeers checks that a request to a peer that does not respond fails after the retries.
func silentPeers(t *testing.T, w *rig.World) {
	for name, silence := range map[string]func(p *rig.Peers){
		"it is closed":            func(p *rig.Peers) { rig.Check(p.B, p.B.QP.Close()) },
		"it is in RESET":          func(p *rig.Peers) { rig.To(p.B, p.B.QP, verbs.QPStateReset) },
		"it is in ERR":            func(p *rig.Peers) { rig.To(p.B, p.B.QP, verbs.QPStateErr) },
		"it has another peer":     func(p *rig.Peers) { p.B.Reconnect(func(a *verbs.QPAttr) { a.AHAttr = *w.B.Route(w.A.End.IPv6) }) },
		"its PSN is half a space": func(p *rig.Peers) { p.B.Reconnect(func(a *verbs.QPAttr) { a.RQPSN ^= 1 << 23 }) },
	} {
		for _, op := range rig.OpsOfAll {
			t.Run(fmt.Sprintf("%s, %v", name, op), func(t *testing.T) {
				p := w.Connect(verbs.QPTypeRC, func(a *verbs.QPAttr) { a.Timeout, a.RetryCnt = 4, 2 })
				silence(p)
				wr := p.A.Request(op, &p.B, 8)
				p.A.Post(wr, wr)
				p.A.Expect(rig.Ended(1, verbs.WCRetryExcErr), rig.Flushed(1))
			})
		}
	}
}

// peerNotReady checks that a request to a peer without a receive is retried up to rnr_retry times, or until the peer
// posts a receive.
func peerNotReady(t *testing.T, w *rig.World) {
	for _, op := range []verbs.Opcode{verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWriteWithImm} {
		for _, retries := range []uint8{0, 1, 3} {
			p := w.Connect(verbs.QPTypeRC, func(a *verbs.QPAttr) { a.RNRRetry = retries })
			wr := p.A.Request(op, &p.B, 300)
			p.A.Post(wr, wr)
			p.A.Expect(rig.Ended(1, verbs.WCRNRRetryExcErr), rig.Flushed(1))
			if got := rig.StateOf(t, p.B.QP); got != verbs.QPStateRTS {
				t.Errorf("%v: the peer is in %v", op, got)
			}
		}
		p := w.Connect(verbs.QPTypeRC, nil) // rnr_retry 7 means no limit
		copy(p.A.MR.Bytes(), rig.Pattern(300, 2))
		wr := p.A.Request(op, &p.B, 300)
		p.A.Post(wr, wr)
		w.Settle() // the requester has received an RNR NAK
		p.B.Recv(1, 0, 300)
		p.B.Recv(2, 0, 300)
		p.A.Expect(rig.OK(1), rig.OK(1))
		p.B.Expect(rig.OK(1), rig.OK(2))
		if !bytes.Equal(p.B.MR.Bytes()[:300], rig.Pattern(300, 2)) {
			t.Errorf("%v: the bytes differ", op)
		}
	}
}
