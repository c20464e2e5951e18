// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"slices"

	"github.com/roced/roced/verbs"
)

// Peers contains two connected queue pairs, and a region at each end that the other can access.
type Peers struct {
	A, B  Peer
	again uint32 // number of reconnects
}

type Peer struct {
	*Station
	QP *verbs.QP
	MR *verbs.MR
}

const RegionLen = 64 << 10

// Connect creates connected peers on the two stations. change can be nil. It changes the attributes of both.
func (w *World) Connect(kind verbs.QPType, change func(*verbs.QPAttr)) *Peers {
	w.A.Helper()
	return Connect(w.A, w.B, kind, change)
}

func Connect(a, b *Station, kind verbs.QPType, change func(*verbs.QPAttr)) *Peers {
	a.Helper()
	p := &Peers{A: a.Peer(kind), B: b.Peer(kind)}
	p.A.Connect(&p.B, change)
	p.B.Connect(&p.A, change)
	return p
}

func (s *Station) Peer(kind verbs.QPType) Peer {
	s.Helper()
	mr, err := s.PD.AllocMR(RegionLen, verbs.AccessLocalWrite|AllAccess|verbs.AccessMWBind)
	Check(s, err)
	return Peer{s, s.NewConnected(kind), mr}
}

// Connect connects the queue pair to another peer's.
func (p *Peer) Connect(other *Peer, change func(*verbs.QPAttr)) {
	p.Helper()
	attr := p.Connection(other.End.IPv4, other.QP.Number())
	if change != nil {
		change(&attr)
	}
	Check(p, p.QP.Connect(&attr))
}

// Post posts requests to the peer's queue pair, and makes them signaled.
func (p *Peer) Post(wrs ...verbs.SendWR) {
	p.Helper()
	for i := range wrs {
		wrs[i].Flags |= verbs.SendSignaled
	}
	Check(p, p.QP.PostSend(wrs))
}

// Recv posts a receive to a part of the peer's region.
func (p *Peer) Recv(id uint64, offset, length int) {
	p.Helper()
	Check(p, p.QP.PostRecv([]verbs.RecvWR{{ID: id, SGList: []verbs.SGE{p.MR.SGE(offset, length)}}}))
}

// Request returns a request for the first length bytes of both regions.
func (p *Peer) Request(op verbs.Opcode, other *Peer, length int) verbs.SendWR {
	wr := verbs.SendWR{ID: 1, Opcode: op, RemoteAddr: other.MR.IOVA(), RKey: other.MR.RKey()}
	if length > 0 {
		wr.SGList = []verbs.SGE{p.MR.SGE(0, length)}
	}
	return wr
}

// Pattern returns bytes in which different parts differ.
func Pattern(length int, seed byte) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*31 ^ seed
	}
	return b
}

// Operations by their effect on the peer.
var (
	OpsOfSend   = []verbs.Opcode{verbs.WRSend, verbs.WRSendWithImm}
	OpsOfWrite  = []verbs.Opcode{verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm}
	OpsOfRead   = []verbs.Opcode{verbs.WRRDMARead}
	OpsOfAtomic = []verbs.Opcode{verbs.WRAtomicCmpAndSwp, verbs.WRAtomicFetchAndAdd}
	OpsOfRDMA   = slices.Concat(OpsOfWrite, OpsOfRead)
	OpsOfRemote = slices.Concat(OpsOfRDMA, OpsOfAtomic)
	OpsOfAll    = slices.Concat(OpsOfSend, OpsOfRemote)
)

const NoEvent verbs.EventType = 0

// Aim changes the remote region of a request to a new one of the peer.
func (p *Peer) Aim(wr *verbs.SendWR, pd *verbs.PD, access verbs.AccessFlags) *verbs.MR {
	p.Helper()
	mr, err := pd.AllocMR(RegionLen, verbs.AccessLocalWrite|access)
	Check(p, err)
	wr.RKey, wr.RemoteAddr = mr.RKey(), mr.IOVA()
	return mr
}

func (d *Device) AnotherPD() *verbs.PD {
	d.Helper()
	pd, err := d.Ctx.AllocPD()
	Check(d, err)
	return pd
}

// Reconnect connects a queue pair again, with changed attributes.
func (p *Peer) Reconnect(change func(*verbs.QPAttr)) {
	p.Helper()
	attr, _, err := p.QP.Query()
	Check(p, err)
	To(p, p.QP, verbs.QPStateReset)
	change(&attr)
	Check(p, p.QP.Connect(&attr))
}

// Unbind unbinds a window and waits. It discards completions of receives that come before.
func (p *Peer) Unbind(mw *verbs.MW) {
	p.Helper()
	p.Post(p.Bind(mw, 0, 0, 0))
	for {
		if wc := p.Wait(1)[0]; wc.Opcode == verbs.WCBindMW {
			Check(p, wc.Err())
			return
		}
	}
}

// Close closes both queue pairs, one of which the test may have closed.
func (p *Peers) Close() {
	for _, end := range []*Peer{&p.A, &p.B} {
		if err := end.QP.Close(); verbs.KindOf(err) != verbs.ErrObjectClosed {
			Check(end, err)
		}
	}
}

// Forbid removes all remote access from the peer's region.
func (p *Peer) Forbid() {
	p.Helper()
	Check(p, p.MR.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite}, verbs.ReregChangeAccess))
}
