// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// Classes of invalid data in queues, among them those that caused bugs in the kernel's Soft-RoCE. Each row is a request
// and its result.
var hostileSends = []struct {
	name string
	send ring.Send
	sges []ib.SGE // key 1 is the attacker's region, key 2 that of its other PD
	want verbs.WCStatus
}{
	{"SGE index out of range", ring.Send{SGECount: math.MaxUint16}, nil, verbs.WCLocQPOpErr},
	{"SGE index out of range by one", ring.Send{SGECount: ring.MaxSGE + 1}, nil, verbs.WCLocQPOpErr},
	{"address plus length overflow", ring.Send{}, []ib.SGE{{Addr: math.MaxUint64, Length: 2, LKey: 1}}, verbs.WCLocProtErr},
	{"address plus length overflow to 0", ring.Send{}, []ib.SGE{{Addr: 1<<64 - 1<<31, Length: 1 << 31, LKey: 1}}, verbs.WCLocProtErr},
	{"a byte beyond the region", ring.Send{}, []ib.SGE{{Addr: 2 * slotLen, Length: 1, LKey: 1}}, verbs.WCLocProtErr},
	{"length of 4 GiB", ring.Send{}, []ib.SGE{{Length: math.MaxUint32, LKey: 1}}, verbs.WCLocProtErr},
	{"sum of lengths overflows", ring.Send{}, slices.Repeat([]ib.SGE{{Length: 2 * slotLen, LKey: 1}}, 4), verbs.WCLocLenErr},
	{"key of another PD", ring.Send{}, []ib.SGE{{Length: 8, LKey: 2}}, verbs.WCLocProtErr},
	{"unknown key", ring.Send{}, []ib.SGE{{Length: 8, LKey: math.MaxUint32}}, verbs.WCLocProtErr},
	{"inline length of 4 GiB", ring.Send{Flags: ib.SendInline, InlineLen: math.MaxUint32}, nil, verbs.WCLocLenErr},
	{"inline length beyond the slot", ring.Send{Flags: ib.SendInline, InlineLen: 1 << 11}, nil, verbs.WCLocLenErr},
	{"unknown handle", ring.Send{AH: math.MaxUint32}, nil, verbs.WCLocQPOpErr},
	{"operation of another service", ring.Send{Opcode: ib.WRRDMARead}, nil, verbs.WCLocQPOpErr},
	{"unknown operation", ring.Send{Opcode: math.MaxUint8}, nil, verbs.WCLocQPOpErr},
}

func TestHostileSends(t *testing.T) {
	s := newScene(t, WithoutWorker())
	for _, row := range hostileSends {
		t.Run(row.name, func(t *testing.T) {
			s.TB, s.a.TB, s.b.TB = t, t, t
			a := s.newAttacker().withQP()
			request := row.send
			request.ID, request.RemoteQPN, request.RemoteQKey = 1, s.sink.Number(), testQKey
			if request.AH == 0 {
				request.AH = uint32(a.ah)
			}
			if request.Opcode == 0 {
				request.Opcode = ib.WRSend
			}
			if request.SGECount == 0 {
				request.SGECount = uint16(len(row.sges))
			}
			data := a.send.Put(&request)
			for i, sge := range row.sges {
				ring.PutSGE(data[i*ring.SGELen:], a.keyed(sge))
			}
			a.send.Publish()
			a.ring()
			if got := a.results(); !slices.Equal(got, []outcome{{1, row.want}}) {
				t.Errorf("completions %v, want %v", got, row.want)
			}
			a.leave()
		})
	}
}

// keyed sets the key of an SGE.
func (a *attacker) keyed(sge ib.SGE) ib.SGE {
	switch sge.LKey {
	case 1:
		sge.LKey = a.mr.LKey
	case 2:
		sge.LKey = a.other.LKey
	}
	return sge
}

// hostileReceives are receive requests for which a message arrives. Rows without a status are too small: the message is
// dropped.
var hostileReceives = []struct {
	name  string
	count uint32 // number of SGEs; 0: len(sges)
	sges  []ib.SGE
	want  []outcome
}{
	{"address plus length overflow", 0, []ib.SGE{{Addr: math.MaxUint64, Length: 100, LKey: 1}}, []outcome{{1, verbs.WCLocProtErr}}},
	{"address plus length overflow to 0", 0, []ib.SGE{{Addr: 1<<64 - 1<<31, Length: 1 << 31, LKey: 1}}, []outcome{{1, verbs.WCLocProtErr}}},
	{"a byte beyond the region", 0, []ib.SGE{{Addr: 2*slotLen - 99, Length: 100, LKey: 1}}, []outcome{{1, verbs.WCLocProtErr}}},
	{"length of 4 GiB", 0, []ib.SGE{{Length: math.MaxUint32, LKey: 1}}, []outcome{{1, verbs.WCLocProtErr}}},
	{"key of another PD", 0, []ib.SGE{{Length: 100, LKey: 2}}, []outcome{{1, verbs.WCLocProtErr}}},
	{"key of another PD behind a good one", 0, []ib.SGE{{Length: 100, LKey: 1}, {Length: 1, LKey: 2}}, []outcome{{1, verbs.WCLocProtErr}}},
	{"SGE index out of range", math.MaxUint32, []ib.SGE{{Length: 100, LKey: 1}}, []outcome{ok(1)}}, // as many as fit the slot
	{"no SGE", 0, nil, nil},
	{"GRH in pieces of a byte", 0, []ib.SGE{{Length: 1, LKey: 1}, {Addr: 1, Length: 1, LKey: 1}, {Addr: 2, Length: 39, LKey: 1}}, nil},
}

func TestHostileReceives(t *testing.T) {
	s := newScene(t, WithoutWorker())
	for _, row := range hostileReceives {
		t.Run(row.name, func(t *testing.T) {
			s.TB, s.a.TB, s.b.TB = t, t, t
			a := s.newAttacker().withQP()
			var sges []ib.SGE
			for _, sge := range row.sges {
				sges = append(sges, a.keyed(sge))
			}
			a.recv.Put(1, sges)
			if row.count != 0 {
				binary.LittleEndian.PutUint32(a.qp.RecvMemory[slotsAt+8:], row.count)
			}
			a.recv.Publish()
			a.message(50)
			if got := a.results(); !slices.Equal(got, row.want) {
				t.Errorf("completions %v, want %v", got, row.want)
			}
			a.leave()
		})
	}
}

// Offsets of the words and the slots of a queue; see package ring.
const (
	producerAt = 0
	consumerAt = 128
	slotsAt    = 256
)

// Impossible indices: the card treats a queue as empty, and a CQ as full. It continues with the next valid index.
func TestHostileIndices(t *testing.T) {
	s := newScene(t, WithoutWorker())
	for _, lie := range []uint32{depth + 2, 1 << 16, 1 << 31, math.MaxUint32 - depth, math.MaxUint32} {
		a := s.newAttacker().withQP()
		good := ring.Send{ID: 1, Opcode: ib.WRSend, Flags: ib.SendSignaled, AH: uint32(a.ah), RemoteQPN: s.sink.Number()}
		a.send.Put(&good)
		a.recv.Put(2, []ib.SGE{{Length: 100, LKey: a.mr.LKey}})
		for _, memory := range [][]byte{a.qp.SendMemory, a.qp.RecvMemory} {
			binary.NativeEndian.PutUint32(memory[producerAt:], lie)
			binary.NativeEndian.PutUint32(memory[consumerAt:], lie)
		}
		a.ring()
		a.message(10)
		if got := a.results(); len(got) != 0 {
			t.Errorf("index %#x: completions %v", lie, got)
		}
		a.send.Publish()
		a.recv.Publish()
		a.ring()
		a.message(10)
		if got := a.results(); !slices.Equal(got, []outcome{ok(1), ok(2)}) {
			t.Errorf("after index %#x: completions %v", lie, got)
		}
		a.leave()
	}
}

// Requests that name destroyed objects fail, even if their memory has been reused.
func TestHostileKeysOfTheGone(t *testing.T) {
	s := newScene(t, WithoutWorker())
	a := s.newAttacker().withQP()
	sge := ib.SGE{Length: 100, LKey: a.mr.LKey}
	check(t, a.session.mrs.dereg(provider.DeregMRRequest{MR: a.mr.MR}))
	ring.PutSGE(a.send.Put(&ring.Send{ID: 1, Opcode: ib.WRSend, AH: uint32(a.ah), RemoteQPN: s.sink.Number(), SGECount: 1}), sge)
	a.send.Publish()
	a.ring()
	_, err := a.session.qps.modify(provider.ModifyQPRequest{QP: a.qp.QP, Attr: verbs.QPAttr{State: verbs.QPStateRTS}, Mask: verbs.QPAttrState})
	check(t, err) // from SQE
	check(t, a.session.ahs.destroy(provider.DestroyAHRequest{AH: a.ah}))
	a.send.Put(&ring.Send{ID: 2, Opcode: ib.WRSend, AH: uint32(a.ah), RemoteQPN: s.sink.Number()})
	a.send.Publish()
	a.ring()
	a.recv.Put(3, []ib.SGE{sge})
	a.recv.Publish()
	a.message(10)
	want := []outcome{{1, verbs.WCLocProtErr}, {2, verbs.WCLocQPOpErr}, {3, verbs.WCLocProtErr}}
	if got := a.results(); !slices.Equal(got, want) {
		t.Errorf("completions %v, want %v", got, want)
	}
	a.leave()
}

// A CQ with an impossible consumer index has overrun, and affects only its own queue pair.
func TestHostileCompletionQueue(t *testing.T) {
	s := newScene(t, WithoutWorker())
	for _, lie := range []uint32{1, 1 << 16, 1 << 31, math.MaxUint32 - 64} {
		a := s.newAttacker().withQP()
		binary.NativeEndian.PutUint32(a.cq.Memory[consumerAt:], lie)
		for i := range uint64(100) {
			if a.modify(verbs.QPStateReset) == nil && a.activate() == nil {
				a.openQueues()
			}
			a.recv.Put(i, []ib.SGE{{Length: 100, LKey: a.mr.LKey}})
			a.recv.Publish()
			a.message(10)
		}
		a.leave()
	}
}

// Doorbell bits of queue pairs that do not exist, which a program can set.
func TestHostileDoorbell(t *testing.T) {
	s := newScene(t, WithoutWorker())
	a := s.newAttacker().withQP()
	for i := range a.session.doorbellMemory {
		a.session.doorbellMemory[i] = 0xFF
	}
	for range 600 { // a round handles several
		s.a.device.Progress()
	}
	a.session.Wake()
	s.unharmed()
	a.leave()
}
