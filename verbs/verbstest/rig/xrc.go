// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"os"
	"path/filepath"

	"github.com/roced/roced/verbs"
)

// XRC is an initiator of station A that is connected to a target of station B.
type XRC struct {
	A      Peer
	B      *Station
	Domain *verbs.XRCD
	Target *verbs.QP
}

// XRCQueue is a shared receive queue of type XRC, with its CQ, its PD, and a region of the PD for its receives, which
// peers can access.
type XRCQueue struct {
	*Station
	*verbs.SRQ
	CQ *verbs.CQ
	PD *verbs.PD
	MR *verbs.MR
}

// ConnectXRC creates and connects both. change can be nil. It changes the attributes of both.
func (w *World) ConnectXRC(change func(*verbs.QPAttr)) *XRC {
	w.A.Helper()
	return w.A.ConnectXRC(w.B, w.B.NewXRCD(), change)
}

// ConnectXRC creates an initiator at the station and a target in a domain of the other one, and connects them.
func (s *Station) ConnectXRC(other *Station, domain *verbs.XRCD, change func(*verbs.QPAttr)) *XRC {
	s.Helper()
	x := &XRC{A: s.Peer(verbs.QPTypeXRCSend), B: other, Domain: domain, Target: other.NewTarget(domain)}
	x.Connect(change)
	return x
}

// Connect moves both ends to RTS.
func (x *XRC) Connect(change func(*verbs.QPAttr)) {
	x.B.Helper()
	to, from := x.A.Connection(x.B.End.IPv4, x.Target.Number()), x.B.Connection(x.A.End.IPv4, x.A.QP.Number())
	if change != nil {
		change(&to)
		change(&from)
	}
	Check(x.B, x.Target.Connect(&from))
	Check(x.A, x.A.QP.Connect(&to))
}

// NewXRCD creates a domain that is not shared.
func (d *Device) NewXRCD() *verbs.XRCD {
	d.Helper()
	domain, err := d.Ctx.AllocXRCD()
	Check(d, err)
	return domain
}

// NewTarget creates a target in RESET.
func (d *Device) NewTarget(domain *verbs.XRCD) *verbs.QP {
	d.Helper()
	qp, err := domain.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCRecv})
	Check(d, err)
	return qp
}

// NewXRCQueue creates a queue of a domain with its own PD and CQ.
func (s *Station) NewXRCQueue(domain *verbs.XRCD) *XRCQueue {
	s.Helper()
	return s.NewXRCQueueOn(domain, s.NewCQ(32))
}

// NewXRCQueueOn creates a queue of a domain with its own PD, which completes to a CQ.
func (s *Station) NewXRCQueueOn(domain *verbs.XRCD, cq *verbs.CQ) *XRCQueue {
	s.Helper()
	q := &XRCQueue{Station: s, PD: s.AnotherPD(), CQ: cq}
	var err error
	q.SRQ, err = q.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: Depth, MaxSGE: 4, Type: verbs.SRQTypeXRC, XRCD: domain, CQ: q.CQ})
	Check(s, err)
	q.MR, err = q.PD.AllocMR(RegionLen, verbs.AccessLocalWrite|AllAccess|verbs.AccessMWBind)
	Check(s, err)
	return q
}

// Recv posts a receive to a part of the queue's region.
func (q *XRCQueue) Recv(id uint64, offset, length int) {
	q.Helper()
	Check(q, q.PostRecv([]verbs.RecvWR{{ID: id, SGList: []verbs.SGE{q.MR.SGE(offset, length)}}}))
}

// Expect waits for these completions and returns them.
func (q *XRCQueue) Expect(want ...Outcome) []verbs.WC {
	q.Helper()
	got := q.WaitOn(q.CQ, len(want))
	Same(q, got, want...)
	return got
}

// Request returns a request to a queue, for the first length bytes of both regions.
func (x *XRC) Request(op verbs.Opcode, q *XRCQueue, length int) verbs.SendWR {
	wr := x.A.Request(op, &Peer{MR: q.MR}, length)
	wr.RemoteSRQN = q.Number()
	return wr
}

// Inode creates a file for an XRC domain. The test's cleanup closes it.
func (d *Device) Inode() *os.File {
	d.Helper()
	file, err := os.Create(filepath.Join(d.TempDir(), "domain"))
	Check(d, err)
	d.Cleanup(func() { Check(d, file.Close()) })
	return file
}
