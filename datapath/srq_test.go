// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// shared is a rig whose queue pair uses an SRQ, together with the program's side of it.
type shared struct {
	*rig
	srq    *SRQ
	slots  []byte // memory of the current queue of the program
	limits int    // events
	ended  int
}

func newShared(t *testing.T) *shared {
	r := newRig(t)
	s := &shared{rig: r, srq: &SRQ{Session: r.session, PD: testPD}}
	s.srq.Queue = s.newQueue(rigDepth)
	s.srq.NoteLimit = func() { s.limits++ }
	r.qp.NoteLastWQE = func() { s.ended++ }
	r.engine.Do(func() { r.qp.SRQ, r.qp.Recv = s.srq, s.srq.Queue })
	return s
}

// newQueue switches the program to a new queue, and returns the engine's side of it.
func (s *shared) newQueue(entries uint32) *ring.RecvConsumer {
	s.Helper()
	g := ring.RecvGeometry(entries, 2)
	s.slots = ring.Alloc(g.Size())
	consumer, err := ring.NewRecvConsumer(s.slots, g)
	if err != nil {
		s.Fatal(err)
	}
	if s.recv, err = ring.NewRecvProducer(s.slots, g); err != nil {
		s.Fatal(err)
	}
	return consumer
}

// arrive delivers a number of packets in one burst.
func (s *shared) arrive(n int) {
	for range n {
		s.link.in = append(s.link.in, datagram([]byte("x")))
	}
	s.run()
}

func (s *shared) ids() (all []uint64) {
	for _, c := range s.completions() {
		if c.Status == ib.WCSuccess {
			all = append(all, c.ID)
		}
	}
	return all
}

// Requests posted to the old queue are consumed before those of the new one, including requests that were posted after
// the card had added the new queue and before the program switched to it.
func TestSRQResizeOrder(t *testing.T) {
	s := newShared(t)
	for round := range uint64(50) {
		id := round * 10
		s.postRecv(id, piece(0, 100))
		old := s.recv
		next := s.newQueue(rigDepth)
		s.engine.Do(func() { s.srq.Trim(); s.srq.Resize(next) })
		old.Put(id+1, []ib.SGE{piece(0, 100)})
		old.Publish()
		s.arrive(int(round % 3)) // some are consumed before the program continues
		old.Put(id+2, []ib.SGE{piece(0, 100)})
		old.Publish()
		s.postRecv(id+3, piece(0, 100))
		s.arrive(4 - int(round%3))
		if got := s.ids(); len(got) != 4 || got[0] != id || got[1] != id+1 || got[2] != id+2 || got[3] != id+3 {
			t.Fatalf("round %d: %v", round, got)
		}
		if old.Waiting() != 0 || s.recv.Waiting() != 0 {
			t.Fatalf("round %d: %d and %d wait", round, old.Waiting(), s.recv.Waiting())
		}
	}
}

// When a program is notified of a completion, the slot of its receive request is already free. Events of the SRQ follow
// the completions, so that a program that handles an event finds the completions before it.
func TestSRQPublishesFirst(t *testing.T) {
	s := newShared(t)
	s.qp.RecvCQ.Wake = func() {
		if n := s.recv.Waiting(); n != 1 {
			t.Errorf("%d receives wait when the program is woken, want 1", n)
		}
		s.woken()
	}
	s.srq.NoteLimit = func() {
		if s.limits++; s.cq.Available(2) != 2 {
			t.Error("the limit's event precedes the completions")
		}
	}
	for i := range uint64(3) {
		s.postRecv(i, piece(0, 100))
	}
	s.engine.Do(func() { s.srq.SetLimit(3) })
	s.cq.Arm(false)
	s.arrive(2)
	if len(s.wake) != 1 || s.limits != 1 {
		t.Errorf("%d wake-ups, %d events", len(s.wake), s.limits)
	}
}

// The transition to ERR reports once that the queue pair consumes no more receive requests, and does not flush those of
// the SRQ.
func TestSRQLastWQE(t *testing.T) {
	s := newShared(t)
	s.postRecv(1, piece(0, 100))
	for range 2 {
		s.engine.Do(func() { s.qp.SetState(ib.QPStateErr) })
		s.run()
	}
	if got := s.completions(); got != nil || s.ended != 1 || s.srq.Waiting() != 1 {
		t.Errorf("%v, %d events, %d wait", got, s.ended, s.srq.Waiting())
	}
	s.engine.Do(func() { s.qp.SetState(ib.QPStateReset) })
	if s.srq.Waiting() != 1 {
		t.Error("RESET has emptied the SRQ")
	}
}

// TestHostileSRQ writes hostile contents into an SRQ; the rows are named after vulnerabilities of other
// implementations. The packet is dropped or its completion is an error, no other memory is written, and the card
// continues.
func TestHostileSRQ(t *testing.T) {
	rows := map[string]struct {
		write  func(slot []byte)
		status ib.WCStatus // of the completion; success: no completion
	}{
		"SGE index out of range":        {func(slot []byte) { binary.LittleEndian.PutUint32(slot[8:], math.MaxUint32) }, ib.WCLocProtErr},
		"SGE count just too large":      {func(slot []byte) { binary.LittleEndian.PutUint32(slot[8:], ring.MaxSGE+1) }, ib.WCLocProtErr},
		"no SGE":                        {func(slot []byte) { binary.LittleEndian.PutUint32(slot[8:], 0) }, ib.WCSuccess},
		"address plus length overflows": {func(slot []byte) { binary.LittleEndian.PutUint64(slot[16:], math.MaxUint64-10) }, ib.WCLocProtErr},
		"past the region":               {func(slot []byte) { binary.LittleEndian.PutUint64(slot[16:], 4*slotLen-50) }, ib.WCLocProtErr},
		"key of another PD":             {func(slot []byte) { binary.LittleEndian.PutUint32(slot[28:], uint32(testKey(3))) }, ib.WCLocProtErr},
		"read-only region":              {func(slot []byte) { binary.LittleEndian.PutUint32(slot[28:], uint32(testKey(2))) }, ib.WCLocProtErr},
		"key of no object":              {func(slot []byte) { binary.LittleEndian.PutUint32(slot[28:], 0xDEADBEEF) }, ib.WCLocProtErr},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := newShared(t)
			neighbour := s.member(0x10)
			s.postRecv(7, piece(0, 100), ib.SGE{Addr: 1 << 40, Length: 100, LKey: 0xBAD})
			slot := s.slots[256:]
			binary.LittleEndian.PutUint32(slot[8:], 1) // the second SGE exceeds the count, but is in the slot
			row.write(slot)
			before := string(s.memory)
			s.arrive(1)
			got := s.completions()
			if row.status == ib.WCSuccess && got != nil || row.status != ib.WCSuccess && (len(got) != 1 || got[0].Status != row.status || got[0].ID != 7) {
				t.Errorf("%+v", got)
			}
			if string(s.memory) != before {
				t.Error("memory was written")
			}
			neighbour.postRecv(1, piece(0, 200))
			d := defaultDatagram()
			d.DestQP = 0x10
			s.link.in = [][]byte{datagramFrom(wire.Path{Source: peerGID, Dest: ownGID}, d, []byte("good"))}
			s.run()
			if got := neighbour.completions(); len(got) != 1 || got[0].Status != ib.WCSuccess {
				t.Errorf("the neighbour got %+v", got)
			}
		})
	}
}

// An SRQ with invalid indexes, in the current queue or a newer one, counts as empty. With valid indexes it continues.
func TestHostileSRQIndices(t *testing.T) {
	s := newShared(t)
	s.postRecv(1, piece(0, 100))
	first := s.slots
	next := s.newQueue(rigDepth)
	s.engine.Do(func() { s.srq.Resize(next) })
	s.postRecv(2, piece(0, 100))
	for _, index := range []uint32{math.MaxUint32, 1 << 31, rigDepth + 1} {
		binary.NativeEndian.PutUint32(first, index)
		binary.NativeEndian.PutUint32(s.slots, index)
		s.arrive(1)
		if got := s.completions(); got != nil || s.srq.Waiting() != 0 {
			t.Errorf("index %#x: %+v, %d wait", index, got, s.srq.Waiting())
		}
	}
	binary.NativeEndian.PutUint32(first, 1)
	binary.NativeEndian.PutUint32(s.slots, 1)
	s.arrive(2)
	if got := s.ids(); len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("%v", got)
	}
	if drops := s.engine.Counters().Drops[DropNoReceive]; drops != 3 {
		t.Errorf("%d drops", drops)
	}
}
