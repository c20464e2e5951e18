// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

type Closer interface{ Close() error }

// Gather is what lies in pieces of a station's memory.
func (s *Station) Gather(sges []verbs.SGE) (all []byte) {
	for _, sge := range sges {
		all = append(all, s.MR.Bytes()[sge.Addr:][:sge.Length]...)
	}
	return all
}

const (
	TestQKey verbs.QKey = 0x11111111
	Slots               = 64   // of each station's memory, a slot a request
	SlotLen             = 2048 // bytes
	Depth               = 8    // of the station's queues
)

// Device is an end's, opened by a test.
type Device struct {
	testing.TB
	End End
	Ctx *verbs.Context

	dropped map[string]uint64 // before the test
}

// Station is a device, and one of each object of it.
type Station struct {
	*Device
	Unseen  bool              // Pair.FramesUnseen
	Session provider.Provider // the end's, judged
	PD      *verbs.PD
	MR      *verbs.MR
	CQ      *verbs.CQ  // of sends and receives
	SRQ     *verbs.SRQ // that the queue pair does not use
	QP      *verbs.QP
}

// DefaultCap is what stations' queue pairs have unless a test wants another.
func DefaultCap() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: Depth, MaxRecvWR: Depth, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}
}

// NewStation opens a context on an end's session, which is closed at the end of the test.
func NewStation(t testing.TB, end End) *Station {
	t.Helper()
	s := &Station{Device: &Device{TB: t, End: end}, Session: Judge(t, end.Provider)}
	var err error
	s.Ctx, err = verbs.Open(s.Session)
	Check(t, err)
	t.Cleanup(func() { Check(t, s.Ctx.Close()) })
	s.PD, err = s.Ctx.AllocPD()
	Check(t, err)
	s.MR, err = s.PD.AllocMR(Slots*SlotLen, verbs.AccessLocalWrite)
	Check(t, err)
	s.CQ, err = s.Ctx.CreateCQ(256)
	Check(t, err)
	s.SRQ, err = s.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: Depth, MaxSGE: 4})
	Check(t, err)
	s.QP = s.Active(DefaultCap())
	return s
}

// NewQP makes a queue pair in RESET.
func (s *Station) NewQP(c verbs.QPCap) *verbs.QP {
	s.Helper()
	return s.NewQPWith(verbs.QPInitAttr{SendCQ: s.CQ, RecvCQ: s.CQ, Cap: c})
}

func (s *Station) NewQPWith(init verbs.QPInitAttr) *verbs.QP {
	s.Helper()
	if init.Type == 0 {
		init.Type = verbs.QPTypeUD
	}
	qp, err := s.PD.CreateQP(&init)
	Check(s, err)
	return qp
}

// Active makes a queue pair in RTS.
func (s *Station) Active(c verbs.QPCap) *verbs.QP {
	s.Helper()
	qp := s.NewQP(c)
	Check(s, qp.Activate(TestQKey))
	return qp
}

func (d *Device) NewCQ(entries int) *verbs.CQ {
	d.Helper()
	cq, err := d.Ctx.CreateCQ(entries)
	Check(d, err)
	return cq
}

// Slot is the memory of a request.
func (s *Station) Slot(i int) []byte { return s.MR.Bytes()[i*SlotLen:][:SlotLen] }

func (s *Station) Piece(i, length int) verbs.SGE { return s.MR.SGE(i*SlotLen, length) }

// AH makes a handle to an address, from the station's own of the same kind.
func (s *Station) AH(to netip.Addr) *verbs.AH {
	s.Helper()
	ah, err := s.PD.CreateAH(Guard(s), s.Route(to))
	Check(s, err)
	return ah
}

func (d *Device) Route(to netip.Addr) *verbs.AHAttr {
	d.Helper()
	own := d.End.IPv6
	switch {
	case to.Is4():
		own = d.End.IPv4
	case to.IsLinkLocalUnicast():
		own = d.End.LinkLocal
	}
	return &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: GID(to), SGIDIndex: d.Line(own)}}
}

// Line is where in the GID table an own address is.
func (d *Device) Line(own netip.Addr) int {
	d.Helper()
	gids, err := d.Ctx.QueryGIDTable(1)
	Check(d, err)
	for _, entry := range gids {
		if entry.GID == GID(own) {
			return entry.Index
		}
	}
	d.Fatalf("%v is not in the GID table: %v", own, gids)
	return 0
}

// Send is a request for the peer's queue pair, with data from the station's memory.
func (s *Station) Send(id uint64, ah *verbs.AH, peer *verbs.QP, sges ...verbs.SGE) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRSend, ID: id, SGList: sges, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: peer.Number(), RemoteQKey: TestQKey}
}

func (s *Station) Post(wrs ...verbs.SendWR) {
	s.Helper()
	Check(s, s.QP.PostSend(wrs))
}

// Receive posts receives of whole slots, numbered as the slots are.
func (s *Station) Receive(slots ...int) {
	s.Helper()
	for _, i := range slots {
		s.ReceiveOn(s.QP, i)
	}
}

func (s *Station) ReceiveOn(qp *verbs.QP, slot int) {
	s.Helper()
	Check(s, qp.PostRecv([]verbs.RecvWR{{ID: uint64(slot), SGList: []verbs.SGE{s.Piece(slot, SlotLen)}}}))
}

// Wait gives exactly n completions, in the order in which they came.
func (s *Station) Wait(n int) []verbs.WC {
	s.Helper()
	return s.WaitOn(s.CQ, n)
}

func (s *Station) WaitOn(cq *verbs.CQ, n int) []verbs.WC {
	s.Helper()
	wcs := make([]verbs.WC, 0, n)
	ctx := Guard(s)
	for len(wcs) < n {
		got, err := cq.Wait(ctx, wcs[len(wcs):n])
		if err != nil {
			s.Fatalf("after %d of %d completions: %v; drops %v", len(wcs), n, err, s.Drops())
		}
		wcs = wcs[:len(wcs)+got]
	}
	return wcs
}

// Expect waits for these completions, and gives them.
func (s *Station) Expect(want ...Outcome) []verbs.WC {
	s.Helper()
	got := s.Wait(len(want))
	Same(s, got, want...)
	return got
}

// Drained waits until the card has taken all that was posted to a queue pair. Completions may come
// a moment later.
func Drained(t testing.TB, qp *verbs.QP) {
	t.Helper()
	Check(t, qp.Drain(Guard(t)))
}

// Received splits the contents of a slot, by its completion.
func (s *Station) Received(wc verbs.WC) (verbs.GRH, string) {
	grh, payload := wc.Payload(s.Slot(int(wc.ID)))
	return grh, string(payload)
}
