// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// crowd adds idle sessions to a rig's engine.
func (r *rig) crowd(count int) (all []*Session) {
	for range count {
		all = append(all, NewSession(ring.NewDoorbell(ring.Alloc(ring.DoorbellSize))))
	}
	r.engine.Do(func() {
		for _, s := range all {
			s.join(r.engine)
		}
	})
	return all
}

// quietLongEnough runs rounds until idle sessions are suspended.
func (r *rig) quietLongEnough(sessions int) {
	r.engine.Do(func() {
		for range 2*quietRounds + 2*sessions {
			r.engine.runRound()
		}
	})
}

// Idle sessions are suspended, except for fewSessions of them. Their doorbells are marked asleep, and they are served
// again when their programs call.
func TestQuietSessionsAreSuspended(t *testing.T) {
	r := newRig(t)
	idle := r.crowd(20)
	r.quietLongEnough(21)
	if n := len(r.engine.doorbells.sessions); n != fewSessions {
		t.Fatalf("%d sessions are polled, want %d", n, fewSessions)
	}
	suspended := 0
	for _, s := range append(idle, r.session) {
		if s.suspended.Load() != s.doorbell.Asleep() {
			t.Error("the suspended state of a session differs from its doorbell")
		}
		if s.suspended.Load() {
			suspended++
		}
	}
	if suspended != 21-fewSessions {
		t.Errorf("%d sessions are suspended", suspended)
	}
	for range 30 { // suspended sessions call, in any order
		r.send.Put(&ring.Send{Opcode: ib.WRSend, Flags: ib.SendInline, AH: 0, RemoteQPN: peerQP})
		r.send.Publish()
		if r.doorbell.Ring(r.qp.DoorbellIndex) {
			r.engine.Kick(r.session)
		} else {
			r.run()
		}
		if len(r.link.out) != 1 {
			t.Fatalf("%d packets left", len(r.link.out))
		}
		r.link.out = nil
		r.quietLongEnough(21)
	}
}

// A session whose doorbell is rung while it is being suspended stays active: the doorbell was not marked asleep yet, so
// its program does not call.
func TestRungWhileDozing(t *testing.T) {
	r := newRig(t)
	r.crowd(10)
	r.engine.Do(func() {
		for range 3 * quietRounds {
			for _, s := range r.engine.doorbells.sessions {
				if s.quiet >= quietRounds && s == r.session {
					s.doorbell.Ring(r.qp.DoorbellIndex)
				}
			}
			r.engine.doorbells.suspendQuiet()
			r.engine.doorbells.first = (r.engine.doorbells.first + 1) % len(r.engine.doorbells.sessions)
			for _, s := range r.engine.doorbells.sessions {
				s.quiet++
			}
		}
	})
	if r.session.suspended.Load() || r.doorbell.Asleep() {
		t.Error("a session that was rung is suspended")
	}
}

// Keys, address handles and indexes in a request refer to objects of its own session, even if other sessions have
// objects with the same numbers.
func TestNumbersOfASession(t *testing.T) {
	r := newRig(t)
	other := r.crowd(1)[0]
	r.engine.Do(func() {
		other.SetMR(&region.MR{LKey: testKey(1), PD: testPD, Memory: make([]byte, slotLen), Write: true})
		other.SetMR(&region.MR{LKey: testKey(4), PD: testPD, Memory: make([]byte, slotLen), Write: true})
		other.SetAH(5, r.ah(PathAttr{State: PathOpen}, peerGID))
	})
	for name, s := range map[string]ring.Send{"memory of another": {}, "address handle of another": {AH: 5}} {
		r := r
		sge := piece(0, 10)
		want := ib.WCLocQPOpErr
		if name == "memory of another" {
			sge.LKey, want = testKey(4), ib.WCLocProtErr
		}
		r.engine.Do(func() { r.qp.SetState(ib.QPStateRTS) })
		r.postSend(s, sge)
		r.run()
		got := r.completions()
		if len(got) != 1 || got[0].Status != want || len(r.link.out) != 0 {
			t.Errorf("%s: %+v, %d packets", name, got, len(r.link.out))
		}
	}
	copy(r.memory, "own")
	r.engine.Do(func() { r.qp.SetState(ib.QPStateRTS) })
	r.postSend(ring.Send{}, piece(0, 3))
	r.run()
	var p wire.Packet
	if len(r.link.out) != 1 || wire.Parse(r.link.out[0], &p) != wire.FaultNone || string(p.Payload()) != "own" {
		t.Errorf("%d packets, payload %q", len(r.link.out), p.Payload())
	}
}

// A removed session is no longer polled, suspended or not; its doorbell has no effect.
func TestRemovedSessions(t *testing.T) {
	r := newRig(t)
	gone := r.crowd(12)
	r.quietLongEnough(13)
	r.engine.Do(func() {
		for _, s := range gone {
			s.Remove()
		}
	})
	if n := len(r.engine.doorbells.sessions); n != 1 {
		t.Errorf("%d sessions are left", n)
	}
	gone[3].doorbell.Ring(5)
	r.engine.Wake(gone[3])
	r.run()
	r.postRecv(1, piece(0, slotLen))
	r.link.in = [][]byte{datagram(nil)}
	r.run()
	if got := r.completions(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}
