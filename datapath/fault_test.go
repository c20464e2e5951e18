// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"os"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// broken is a card that two programs share. Tests corrupt the engine's state of the first program.
type broken struct {
	*testing.T
	engine *Engine
	bad    *end // a connection, to itself
	ud     *rig // datagrams of the same program
	good   *end // another program's connection, to itself
	faults []Fault
}

func newBroken(t *testing.T) *broken {
	network := link.NewNetwork(1)
	b := &broken{T: t, good: newEnd(t, network, 1)}
	b.engine = b.good.engine
	b.engine.noteFault = func(f Fault) { b.faults = append(b.faults, f) }
	b.bad = b.good.another(0x888, wire.ServiceRC)
	for _, e := range []*end{b.good, b.bad} {
		e.qp.SendCQ.Session = e.session
		e.meet(e, wire.ServiceRC, func(c *Connection) { c.PeerQPN, c.Timeout = e.qp.Number, 1 })
		b.engine.Do(func() { e.c.Path.set(b.engine, PathAttr{State: PathLocal}) })
	}
	b.ud = &rig{T: t, engine: b.engine, doorbell: b.bad.bell, session: b.bad.session, wake: make(chan struct{}, 1), memory: b.bad.memory}
	b.ud.makeQP(b.ud.makeCQ(4 * rigDepth))
	b.ud.qp.Number, b.ud.qp.DoorbellIndex = 0x889, 0x89
	b.ud.qp.SendCQ.Session = b.bad.session
	b.engine.Do(func() {
		b.engine.AddQP(b.ud.qp)
		b.ud.qp.SetState(ib.QPStateRTS)
		b.bad.session.SetAH(0, &AH{PD: testPD, Path: &Path{state: PathLocal}, Template: wire.NewTemplate(wire.Path{Source: b.good.gid, Dest: b.good.gid})})
	})
	return b
}

// rounds runs the engine until it has no more work.
func (b *broken) rounds() {
	b.Helper()
	for range 1000 {
		b.engine.lease.Lock()
		moved := b.engine.runRound()
		b.engine.lease.Unlock()
		if !moved {
			return
		}
	}
	b.Fatal("the engine does not run out of work")
}

// connected sends a message of the broken program over its connection.
func (b *broken) connected() {
	b.bad.postRecv(1, at(0, 100))
	b.bad.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
}

// datagram sends a datagram of the broken program to itself.
func (b *broken) datagram() {
	b.ud.postRecv(1, ib.SGE{Addr: endBase, Length: 100, LKey: testKey(1)})
	b.ud.send.Put(&ring.Send{Opcode: ib.WRSend, RemoteQPN: b.ud.qp.Number, RemoteQKey: testQKey, Flags: ib.SendSignaled})
	b.ud.send.Publish()
	if b.ud.doorbell.Ring(b.ud.qp.DoorbellIndex) {
		b.engine.doorbells.call(b.ud.session)
	}
}

// goesOn checks that the other program's messages arrive.
func (b *broken) goesOn() {
	b.Helper()
	b.good.postRecv(1, at(5000, 100))
	b.good.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 9))
	b.rounds()
	expect(b.T, b.good.poll(), ib.WCSuccess, ib.WCSuccess)
}

// A fault at any stage of a round ends the session whose work was in progress.
func TestFaultCostsOneSession(t *testing.T) {
	panics := func() { panic("a bug") }
	for name, row := range map[string]struct {
		spoil func(b *broken)
		act   func(b *broken)
	}{
		"doorbell":             {func(b *broken) { b.bad.session.addTurn = nil }, (*broken).connected},
		"send, datagram":       {func(b *broken) { b.bad.session.ahs[0].Path = nil }, (*broken).datagram},
		"send queue, datagram": {func(b *broken) { b.ud.qp.Send = nil }, (*broken).datagram},
		"send, connection":     {func(b *broken) { b.bad.c.Path = nil }, (*broken).connected},
		"receive, datagram":    {func(b *broken) { b.ud.qp.Recv = nil }, (*broken).datagram},
		"receive, connection":  {func(b *broken) { b.bad.qp.Recv = nil }, (*broken).connected},
		"completion of a send": {func(b *broken) { b.ud.qp.SendCQ = nil }, (*broken).datagram},
		"completion, receive":  {func(b *broken) { b.bad.qp.RecvCQ = nil }, (*broken).connected},
		"event of a CQ":        {func(b *broken) { b.bad.qp.RecvCQ.Notify = panics; b.bad.cq.Arm(false) }, (*broken).connected},
		"wake-up":              {func(b *broken) { b.bad.qp.RecvCQ.Wake = panics; b.bad.cq.ArmWait() }, (*broken).connected},
		"state":                {func(b *broken) { b.ud.qp.NoteState = nil; b.bad.session.ahs[0] = nil }, (*broken).datagram},
		"event of a queue pair": {func(b *broken) {
			b.bad.qp.NoteEvent = nil
			b.bad.c.NotifyDrained = true
			b.bad.qp.SetState(ib.QPStateSQD)
		}, (*broken).connected},
		"SRQ's limit": {func(b *broken) {
			b.bad.qp.SRQ = &SRQ{Session: b.bad.session, PD: testPD, Queue: b.bad.qp.Recv, NoteLimit: panics, limit: 5}
		}, (*broken).connected},
		"last WQE": {func(b *broken) {
			b.bad.qp.SRQ, b.bad.qp.NoteLastWQE = &SRQ{Session: b.bad.session, PD: testPD, Queue: b.bad.qp.Recv}, panics
		}, func(b *broken) { b.bad.post(to(99, 0), ring.Atomic{}) }},
		"timer": {func(b *broken) { b.bad.c.Path, b.bad.c.Timeout = &Path{state: PathUnreachable}, 13 }, func(b *broken) {
			b.bad.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
			b.rounds()
			b.bad.qp.Send = nil
			for len(b.faults) == 0 {
				b.rounds()
			}
		}},
		"postponed event": {func(b *broken) {
			b.bad.qp.RecvCQ.Notify = panics
			b.bad.qp.RecvCQ.Moderate(Moderation{Count: 100, Period: 1})
			b.bad.cq.Arm(false)
		}, func(b *broken) {
			b.connected()
			for len(b.faults) == 0 {
				b.rounds()
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBroken(t)
			b.engine.Do(func() { row.spoil(b) })
			row.act(b)
			b.rounds()
			if len(b.faults) == 0 || len(b.faults) > 2 { // two faults: the QP is both sender and receiver
				t.Fatalf("%d faults", len(b.faults))
			}
			for _, f := range b.faults {
				if f.Session != b.bad.session || f.Ends || len(f.Stack) == 0 {
					t.Errorf("%v of %p, not %p; it ends %v", f.Cause, f.Session, b.bad.session, f.Ends)
				}
			}
			b.goesOn()
			b.ends()
			b.goesOn()
			if c := b.engine.Counters(); c.Faults == 0 || c.Received+c.Copies != c.Delivered+c.dropped() {
				t.Errorf("%+v", c)
			}
		})
	}
}

// ends flushes the requests of the broken program and removes its queue pairs, as the control plane does. This may
// panic too.
func (b *broken) ends() {
	quietly := func(do func()) {
		defer func() { _ = recover() }()
		b.engine.Do(do)
	}
	for _, qp := range []*QP{b.bad.qp, b.ud.qp} {
		quietly(func() { qp.SetState(ib.QPStateErr) })
		b.rounds()
		quietly(func() { b.engine.RemoveQP(qp) })
	}
	b.engine.Do(func() { b.bad.session.Remove() })
	b.rounds()
}

// A fault at one member of a group does not affect the copies of the others.
func TestFaultInAGroup(t *testing.T) {
	r := newRig(t)
	other := NewSession(r.doorbell)
	members := []*rig{r, r.member(0x10), r.member(0x11)}
	r.run() // no queue pair is in turn
	members[1].qp.Session, members[1].qp.Recv = other, nil
	r.setGroup(testGroup, members...)
	r.postRecv(1, piece(0, 200))
	members[2].postRecv(2, piece(400, 200))
	var faults []Fault
	r.engine.noteFault = func(f Fault) { faults = append(faults, f) }
	r.link.in = [][]byte{toGroup(testGroup, []byte("to all"))}
	r.run()
	for _, m := range []*rig{r, members[2]} {
		if got := m.completions(); len(got) != 1 || got[0].Status != ib.WCSuccess {
			t.Errorf("%+v", got)
		}
	}
	if len(faults) != 1 || faults[0].Session != other {
		t.Errorf("%d faults", len(faults))
	}
	if c := r.engine.Counters(); c.Drops[DropFault] != 1 || c.Received+c.Copies != c.Delivered+c.dropped() {
		t.Errorf("%+v", c)
	}
}

// A fault at the receiver of a message is not attributed to a sender on the same card: the message is sent once, and
// the other members of its group receive it.
func TestFaultIsNotTheSenders(t *testing.T) {
	r := newRig(t)
	other := NewSession(r.doorbell)
	members := []*rig{r.member(0x10), r.member(0x11), r}
	r.run() // no queue pair is in turn
	members[0].qp.Session, members[0].qp.Recv = other, nil
	r.setGroup(testGroup, members...)
	for i, m := range members {
		m.recv.Put(uint64(i), []ib.SGE{piece(i*400, 200)})
		m.recv.Publish()
	}
	var faults []Fault
	r.engine.noteFault = func(f Fault) { faults = append(faults, f) }
	r.sendToGroup(testGroup)
	r.sent() // one frame
	if len(faults) != 1 || faults[0].Session != other {
		t.Errorf("%d faults", len(faults))
	}
	for _, m := range members[1:] {
		if got := m.completions(); len(got) != 1 || got[0].Status != ib.WCSuccess {
			t.Errorf("%+v", got)
		}
	}
}

// brokenLink panics when frames are requested.
type brokenLink struct {
	fakeLink
	times int
}

func (l *brokenLink) Receive() int {
	if l.times--; l.times >= 0 {
		panic("no frames")
	}
	return l.fakeLink.Receive()
}

// A fault outside the work of any session drops the current packet. After too many faults the engine stops and reports
// this.
func TestFaultOfNobody(t *testing.T) {
	for _, times := range []int{1, maxFaults - 1, maxFaults} {
		l := &brokenLink{times: times}
		r := newRigOn(t, l)
		var faults []Fault
		r.engine.noteFault = func(f Fault) { faults = append(faults, f) }
		r.postRecv(1, piece(0, 200))
		l.in = [][]byte{datagram(nil)}
		for range times + 3 {
			r.engine.lease.Lock()
			_, _, _ = r.engine.runHeld(listens)
		}
		stopped := times == maxFaults
		if got := r.completions(); (len(got) == 0) != stopped {
			t.Errorf("%d faults: %+v", times, got)
		}
		if len(faults) != times || faults[0].Session != nil || faults[times-1].Ends != stopped {
			t.Errorf("got %d faults, %d were reported", times, len(faults))
		}
	}
}

// A panic in a change propagates to the caller, and the engine continues.
func TestFaultInAChange(t *testing.T) {
	b := newBroken(t)
	func() {
		defer func() {
			if recover() != "a bug" {
				t.Error("the panic did not reach the caller")
			}
		}()
		b.engine.Do(func() { panic("a bug") })
	}()
	b.goesOn()
	if len(b.faults) != 0 {
		t.Errorf("%d faults", len(b.faults))
	}
}

// A session with a fault stops: its queue pairs are in ERR, except those in RESET, and are not served. After a second
// fault the session is removed, until it is restored.
func TestFaultStopsASession(t *testing.T) {
	b := newBroken(t)
	s, idle := b.bad.session, b.bad.qp
	b.bad.addQP(0x88A)
	b.bad.meet(b.good, wire.ServiceRC, nil)
	b.connected() // to a peer that does not respond
	b.rounds()
	b.engine.Do(func() { idle.SetState(ib.QPStateReset) })
	if b.engine.timers.empty() {
		t.Fatal("the message was acknowledged")
	}
	for _, removed := range []bool{false, true} {
		b.engine.Do(func() {
			if !removed {
				b.engine.round.turns.add(b.ud.qp)
			}
			s.stopServing()
		})
		if !s.faulted || s.removed != removed || !b.engine.timers.empty() || !b.engine.round.turns.empty() {
			t.Errorf("faulted %v, removed %v, timers %v", s.faulted, s.removed, b.engine.timers.heap)
		}
		if idle.State != ib.QPStateReset || b.bad.qp.State != ib.QPStateErr || b.ud.qp.State != ib.QPStateErr {
			t.Errorf("states %v, %v, %v", idle.State, b.bad.qp.State, b.ud.qp.State)
		}
	}
	b.engine.Do(func() { s.Restore() })
	b.bad.qp = idle
	b.engine.Do(func() {
		for _, state := range []ib.QPState{ib.QPStateReset, ib.QPStateInit, ib.QPStateRTR, ib.QPStateRTS} {
			b.ud.qp.SetState(state)
		}
	})
	b.datagram()
	b.rounds()
	if got := b.ud.completions(); s.faulted || s.removed || len(got) != 2 || !slices.Contains(b.engine.doorbells.sessions, s) {
		t.Errorf("restored: faulted %v, removed %v, %+v", s.faulted, s.removed, got)
	}
	b.engine.Do(func() { s.Restore() }) // it was not removed
	b.goesOn()
}

// Requests that any goroutine sends before a session is closed may be those of another session, whose memory is missing.
func TestFaultOfAnyGoroutine(t *testing.T) {
	b := newBroken(t)
	fd, err := unix.MemfdCreate("missing", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	missing, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED) // of an empty file
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(missing)
	b.engine.Do(func() {
		b.bad.session.SetMR(&region.MR{LKey: testKey(1), PD: testPD, Base: endBase, Memory: missing})
	})
	b.bad.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
	b.good.postRecv(1, at(0, 100))
	b.good.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
	done := make(chan struct{})
	go func() { // without debug.SetPanicOnFault
		defer close(done)
		b.engine.Settle(b.good.session, waittest.Limit)
	}()
	<-done
	b.rounds()
	if len(b.faults) != 1 || b.faults[0].Session != b.bad.session {
		t.Errorf("faults %+v, want one of the session without memory", b.faults)
	}
	b.good.poll()
	b.goesOn()
}

// Each fault is counted and attributed to the current session, not to one that had a fault before.
func TestFaultsAreCounted(t *testing.T) {
	b := newBroken(t)
	b.bad.qp.Recv = nil
	b.connected()
	b.engine.lease.Lock()
	for len(b.faults) == 0 {
		b.engine.runRound()
	}
	whole := b.engine.link
	b.engine.link = &brokenLink{times: 1}
	b.engine.runRound() // no other work in between
	b.engine.link = whole
	b.engine.lease.Unlock()
	n := len(b.faults)
	if b.faults[0].Session != b.bad.session || b.faults[n-1].Session != nil || b.engine.Counters().Faults != uint64(n) {
		t.Errorf("%d faults, %d counted, the last of %v", n, b.engine.Counters().Faults, b.faults[n-1].Session)
	}
}

// A fault at the receiver is not attributed to the sender either if the message is to a single queue pair.
func TestFaultIsNotTheSendersOfOne(t *testing.T) {
	r := newRig(t)
	m := r.member(0x10)
	other := NewSession(r.doorbell)
	r.run() // no queue pair is in turn
	m.qp.Session, m.qp.Recv = other, nil
	var faults []Fault
	r.engine.noteFault = func(f Fault) { faults = append(faults, f) }
	r.send.Put(&ring.Send{Opcode: ib.WRSend, AH: 1, RemoteQPN: m.qp.Number, RemoteQKey: testQKey, Flags: ib.SendSignaled})
	r.send.Publish()
	r.doorbell.Ring(3)
	r.run()
	if got := r.completions(); len(got) != 1 || got[0].Status != ib.WCSuccess || r.qp.State != ib.QPStateRTS {
		t.Errorf("the sender: %+v, state %v", got, r.qp.State)
	}
	if len(faults) != 1 || faults[0].Session != other {
		t.Errorf("%d faults", len(faults))
	}
}

// A fault of the sender after it has sent a message to a group on this card is attributed to the sender.
func TestFaultAfterAGroup(t *testing.T) {
	r := newRig(t)
	m := r.member(0x10)
	r.run() // no queue pair is in turn
	m.qp.Session = NewSession(r.doorbell)
	r.setGroup(testGroup, m)
	r.qp.SendCQ = nil
	r.qp.SigAll = true
	var faults []Fault
	r.engine.noteFault = func(f Fault) { faults = append(faults, f) }
	r.sendToGroup(testGroup)
	if len(faults) != 1 || faults[0].Session != r.session {
		t.Errorf("%d faults", len(faults))
	}
}
