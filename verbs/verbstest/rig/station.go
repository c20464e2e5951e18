// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

type Closer interface{ Close() error }

// Gather returns the contents of SGEs of the station's region.
func (s *Station) Gather(sges []verbs.SGE) (all []byte) {
	for _, sge := range sges {
		all = append(all, s.MR.Bytes()[sge.Addr:][:sge.Length]...)
	}
	return all
}

const (
	TestQKey verbs.QKey = 0x11111111
	Slots               = 64   // slots in each station's region, one per request
	SlotLen             = 2048 // length of a slot in bytes
	Depth               = 8    // capacity of the station's work queues
)

// Device is an opened device of an end.
type Device struct {
	testing.TB
	End End
	Ctx *verbs.Context

	dropped map[string]uint64 // drop counters before the test
}

// Station is a device with one of each object.
type Station struct {
	*Device
	Unseen  bool              // Pair.FramesUnseen
	Session provider.Provider // the end's session, wrapped by Judge
	PD      *verbs.PD
	MR      *verbs.MR
	CQ      *verbs.CQ  // for sends and receives
	SRQ     *verbs.SRQ // not used by QP
	QP      *verbs.QP
}

// DefaultCap returns the capacities of a station's queue pair.
func DefaultCap() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: Depth, MaxRecvWR: Depth, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}
}

// NewStation opens a context on an end's session. The test's cleanup closes it.
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

// NewQP creates a queue pair in RESET.
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

// Active creates a queue pair in RTS.
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

// Slot returns the memory of slot i.
func (s *Station) Slot(i int) []byte { return s.MR.Bytes()[i*SlotLen:][:SlotLen] }

func (s *Station) Piece(i, length int) verbs.SGE { return s.MR.SGE(i*SlotLen, length) }

// AH creates an address handle, with the station's address of the same kind as the source.
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

// Line returns the GID index of one of the device's own addresses.
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

// Send returns a signaled request that sends SGEs to the peer's queue pair.
func (s *Station) Send(id uint64, ah *verbs.AH, peer *verbs.QP, sges ...verbs.SGE) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRSend, ID: id, SGList: sges, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: peer.Number(), RemoteQKey: TestQKey}
}

func (s *Station) Post(wrs ...verbs.SendWR) {
	s.Helper()
	Check(s, s.QP.PostSend(wrs))
}

// Receive posts receives of whole slots. Their IDs are the slot numbers.
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

// Wait waits for exactly n completions and returns them in order.
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

// Expect waits for these completions and returns them.
func (s *Station) Expect(want ...Outcome) []verbs.WC {
	s.Helper()
	got := s.Wait(len(want))
	Same(s, got, want...)
	return got
}

// Drained waits until the card has dequeued all requests of a queue pair. Their completions may follow a little later.
func Drained(t testing.TB, qp *verbs.QP) {
	t.Helper()
	Check(t, qp.Drain(Guard(t)))
}

// Received returns the GRH and the payload of the slot that a completion refers to.
func (s *Station) Received(wc verbs.WC) (verbs.GRH, string) {
	grh, payload := wc.Payload(s.Slot(int(wc.ID)))
	return grh, string(payload)
}
