// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// Changes of memory while the card reads it. The attacker's memory is from the kernel, so the race detector reports
// only races of the card.

// during calls a function repeatedly in a goroutine, until the returned function is called.
func during(again func()) (end func()) {
	stop, done := make(chan struct{}), sync.WaitGroup{}
	done.Add(1)
	go func() {
		defer done.Done()
		for !isClosed(stop) {
			again()
		}
	}()
	return func() {
		close(stop)
		done.Wait()
	}
}

// hostileRounds is the number of rounds of the tests below.
var hostileRounds = often(300)

// A receive entry that is read twice would be checked with one content and used with another: its count of SGEs, its
// keys and its lengths change all the time. A message with a completion has arrived completely.
func TestReceiveEntryReadTwice(t *testing.T) {
	s := newScene(t)
	s.receiveEntryReadTwice(s.newAttacker().withQP())
}

// The same for an SRQ entry.
func TestSRQEntryReadTwice(t *testing.T) {
	s := newScene(t)
	s.receiveEntryReadTwice(s.newAttacker().withSRQ())
}

func (s *scene) receiveEntryReadTwice(a *attacker) {
	s.Helper()
	good, short := ib.SGE{Length: 200, LKey: a.mr.LKey}, ib.SGE{Length: 50, LKey: a.mr.LKey}
	// Under the race detector numbers are written byte by byte: no mixture of the two addresses is valid.
	bad := ib.SGE{Addr: 1 << 63, Length: 1 << 31, LKey: a.other.LKey}
	message := bytes.Repeat([]byte("whole"), 20)
	copy(s.b.slot(9), message)
	end := during(func() { a.flipReceives(good, bad, short) })
	seen, waiting := map[verbs.WCStatus]int{}, false
	both := func() bool { return seen[verbs.WCSuccess] > 0 && seen[verbs.WCLocProtErr] > 0 }
	rounds := uint64(hostileRounds)
	for i := uint64(0); i < 10*rounds || !both() && i < 300_000; i++ { // the changing goroutine may not run for a while
		if !waiting {
			a.recv.Put(i, []ib.SGE{good})
			a.recv.Publish()
		}
		a.message(len(message))
		done := a.revive()
		waiting = len(done) == 0
		for _, o := range done {
			if seen[o.status]++; o.status == verbs.WCSuccess && !bytes.Equal(a.mr.Memory[40:140], message) {
				s.Errorf("message %d: %q", i, a.mr.Memory[40:140])
			}
		}
		if !waiting { // else a message could use it at any moment
			clear(a.mr.Memory)
		}
	}
	end()
	if !both() {
		s.Errorf("completions by status %v", seen)
	}
	a.leave()
}

// flipReceives overwrites all receive requests with good and bad content.
func (a *attacker) flipReceives(contents ...ib.SGE) {
	stride := int(a.qp.RecvGeometry.Stride)
	for _, sge := range contents {
		for at := slotsAt; at < len(a.qp.RecvMemory); at += stride {
			slot := a.qp.RecvMemory[at : at+stride]
			binary.LittleEndian.PutUint32(slot[8:], sge.Length) // the count
			ring.PutSGE(slot[16:], sge)
			binary.LittleEndian.PutUint32(slot[8:], 1)
		}
	}
}

// revive returns the completions, and makes a failed queue pair usable again.
func (a *attacker) revive() []outcome {
	a.Helper()
	all := a.results()
	if slices.ContainsFunc(all, func(o outcome) bool { return o.status != verbs.WCSuccess }) {
		check(a, a.modify(verbs.QPStateReset))
		check(a, a.activate())
		a.results()
		a.openQueues()
	}
	return all
}

// The same for a send entry: its handle, its count, the flag for inline data and its length.
func TestSendEntryReadTwice(t *testing.T) {
	s := newScene(t)
	a := s.newAttacker().withQP()
	wr := ring.Send{Opcode: ib.WRSend, Flags: ib.SendSignaled, AH: uint32(a.ah), RemoteQPN: s.sink.Number(), RemoteQKey: testQKey, SGECount: 1}
	end := during(func() {
		a.flipSends(ib.SGE{Length: 64, LKey: a.mr.LKey}, ib.SGE{Addr: 1 << 63, Length: 1 << 31, LKey: a.other.LKey})
	})
	sent := 0
	for i := uint64(0); i < uint64(hostileRounds) || sent == 0 && i < 100_000; i++ { // the changing goroutine may be late
		wr.ID = i
		ring.PutSGE(a.send.Put(&wr), ib.SGE{Length: 64, LKey: a.mr.LKey})
		a.send.Publish()
		a.ring()
		a.revive()
		sent += s.drainSink()
	}
	end()
	if sent == 0 {
		t.Error("nothing was sent")
	}
	a.leave()
}

func (a *attacker) flipSends(contents ...ib.SGE) {
	stride := int(a.qp.SendGeometry.Stride)
	for i, sge := range contents {
		for at := slotsAt; at < len(a.qp.SendMemory); at += stride {
			slot := a.qp.SendMemory[at : at+stride]
			slot[9] = byte(ib.SendSignaled) + byte(i)*byte(ib.SendInline)
			binary.LittleEndian.PutUint16(slot[10:], uint16(1+i*0xFFFE))
			binary.LittleEndian.PutUint32(slot[28:], uint32(i)*(1<<31+8))
			ring.PutSGE(slot[32:], sge)
		}
	}
}

// Use of a queue pair's resources while modify changes them: messages arrive and requests are sent while the queue
// pair, its region and its handle are reset, destroyed and recreated.
func TestResourcesWhileModifyChangesThem(t *testing.T) {
	s := newScene(t)
	a := s.newAttacker().withQP()
	number := a.qp.Number
	endFlood := s.flood("10.0.0.1", func() verbs.QPN { return number })
	endRings := during(func() {
		if a.session.Doorbell().Ring(attackerIndex) {
			a.session.Wake()
		}
	})
	for i := range hostileRounds {
		a.fillQueues()
		switch i % 4 {
		case 0:
			check(t, a.modify(verbs.QPStateErr))
			fallthrough
		case 1:
			check(t, a.modify(verbs.QPStateReset))
			check(t, a.activate())
		case 2:
			check(t, a.session.qps.destroy(provider.DestroyQPRequest{QP: a.qp.QP}))
			a.makeQP()
		case 3:
			a.renewObjects()
		}
		a.openQueues()
		a.results()
	}
	endRings()
	endFlood()
	a.leave()
}

// fillQueues posts requests until the queues are full.
func (a *attacker) fillQueues() {
	wr := ring.Send{Opcode: ib.WRSend, AH: uint32(a.ah), RemoteQPN: a.sink.Number(), RemoteQKey: testQKey, SGECount: 1}
	for i := range uint64(depth) {
		ring.PutSGE(a.send.Put(&wr), ib.SGE{Length: 64, LKey: a.mr.LKey})
		a.recv.Put(i, []ib.SGE{{Length: 200, LKey: a.mr.LKey}})
	}
	a.send.Publish()
	a.recv.Publish()
}

// renewObjects destroys the region and the handle that requests name, and creates new ones.
func (a *attacker) renewObjects() {
	a.Helper()
	check(a, a.session.mrs.dereg(provider.DeregMRRequest{MR: a.mr.MR}))
	check(a, a.session.ahs.destroy(provider.DestroyAHRequest{AH: a.ah}))
	var err error
	a.mr, err = a.session.mrs.allocate(provider.AllocMRRequest{PD: a.pd, Length: 2 * slotLen, Access: verbs.AccessLocalWrite})
	check(a, err)
	ah, err := a.session.ahs.create(guard(a), provider.CreateAHRequest{PD: a.pd, Attr: *a.a.route("10.0.0.2")})
	check(a, err)
	a.ah = ah.AH
}

// flood makes the peer send messages to an address, from its own queue pair, until the returned function is called.
func (s *scene) flood(address string, to func() verbs.QPN) (end func()) {
	s.Helper()
	cq, err := s.b.ctx.CreateCQ(64)
	check(s, err)
	qp, err := s.b.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 32}})
	check(s, err)
	check(s, qp.Activate(testQKey))
	ah := s.b.ah(address)
	wrs := []verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{s.b.piece(20, 100)}, AH: ah, RemoteQPN: to(), RemoteQKey: testQKey}}
	copy(s.b.slot(20), bytes.Repeat([]byte("flood"), 20))
	stop := during(func() {
		_ = qp.PostSend(wrs) // the queue may be full
		_, _ = cq.Poll(make([]verbs.WC, 8))
	})
	return func() {
		s.Helper()
		stop()
		check(s, qp.Close())
		check(s, cq.Close())
		check(s, ah.Close())
	}
}

// Packets processed after ERR: after the change, nothing is written to the program's memory, although requests remain
// and packets keep arriving.
func TestPacketsProcessedAfterERR(t *testing.T) {
	s := newScene(t)
	for range 20 {
		a := s.newAttacker().withQP()
		end := s.flood("10.0.0.1", func() verbs.QPN { return a.qp.Number })
		a.fillQueues()
		eventually(t, "a message", func() bool { return len(a.results()) > 0 })
		check(t, a.modify(verbs.QPStateErr))
		a.results()
		clear(a.mr.Memory)
		a.recv.Put(99, []ib.SGE{{Length: 200, LKey: a.mr.LKey}})
		a.recv.Publish() // without ringing
		before := s.a.drops()["qp_state"]
		eventually(t, "more messages", func() bool { return s.a.drops()["qp_state"] > before+10 })
		if slices.ContainsFunc(a.mr.Memory, func(b byte) bool { return b != 0 }) {
			t.Error("a message was written to memory after ERR")
		}
		for _, o := range a.results() {
			if o.status == verbs.WCSuccess {
				t.Errorf("completion %v after ERR", o)
			}
		}
		end()
		a.leave()
	}
}
