// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

var (
	testGroup  = wire.GID{10: 0xff, 11: 0xff, 12: 239, 13: 1, 14: 2, 15: 3}
	otherGroup = wire.GID{10: 0xff, 11: 0xff, 12: 239, 13: 129, 14: 2, 15: 3} // with the same MAC
	testGroup6 = wire.GID{0: 0xff, 1: 0x0e, 15: 9}
)

// member adds another queue pair in RTS to a rig's engine.
func (r *rig) member(number wire.QPN) *rig {
	r.Helper()
	m := &rig{T: r.T, engine: r.engine, link: r.link, doorbell: r.doorbell, session: r.session, wake: make(chan struct{}, 1), memory: r.memory}
	m.makeQP(m.makeCQ(4 * rigDepth))
	m.qp.Number, m.qp.DoorbellIndex = number, uint32(number)
	m.engine.Do(func() { m.engine.AddQP(m.qp); m.qp.SetState(ib.QPStateRTS) })
	return m
}

func (r *rig) setGroup(mgid wire.GID, members ...*rig) {
	qps := make([]*QP, len(members))
	for i, m := range members {
		qps[i] = m.qp
	}
	r.engine.Do(func() { r.engine.setGroup(mgid, qps) })
}

// Each member has its own checks and its own result; a member that fails a check does not affect the others.
func TestFanOut(t *testing.T) {
	r := newRig(t)
	good, keyless, full, late, short := r, r.member(0x10), r.member(0x11), r.member(0x12), r.member(0x13)
	r.engine.Do(func() {
		keyless.qp.QKey++
		late.qp.SetState(ib.QPStateInit)
	})
	r.setGroup(testGroup, good, keyless, full, late, short)
	for i, m := range []*rig{good, keyless, late} {
		m.postRecv(uint64(i), piece(i*200, 200))
	}
	short.postRecv(9, piece(800, 41))
	r.link.in = [][]byte{toGroup(testGroup, []byte("to all"))}
	r.run()
	if got := good.completions(); len(got) != 1 || got[0].Status != ib.WCSuccess || got[0].ByteLen != 46 || got[0].QPN != testQP {
		t.Errorf("the good member got %+v", got)
	}
	for name, m := range map[string]*rig{"wrong Q_Key": keyless, "no receive": full, "INIT": late, "short buffer": short} {
		if got := m.completions(); got != nil {
			t.Errorf("%s got %+v", name, got)
		}
	}
	c := r.engine.Counters()
	for _, reason := range []Drop{DropQKey, DropNoReceive, DropQPState, DropNoRoom} {
		if c.Drops[reason] != 1 {
			t.Errorf("%v: %d", reason, c.Drops[reason])
		}
	}
	if c.Received != 1 || c.Copies != 4 || c.Received+c.Copies != c.Delivered+c.Dropped() {
		t.Errorf("%+v", c)
	}
}

// Groups are distinguished by IP address: several groups can share a MAC. A detached member receives no packets, even
// if the same pair of addresses is cached.
func TestGroupsAreTheirAddress(t *testing.T) {
	r := newRig(t)
	r.setGroup(testGroup, r)
	for i := range 3 {
		r.postRecv(uint64(i), piece(0, 200))
	}
	r.link.in = [][]byte{toGroup(testGroup, nil), toGroup(otherGroup, nil), toGroup(testGroup, nil)}
	r.run()
	if got := r.completions(); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
	r.setGroup(testGroup)
	r.link.in = [][]byte{toGroup(testGroup, nil)}
	r.run()
	if got := r.completions(); got != nil {
		t.Errorf("after the detach: %+v", got)
	}
	if c := r.engine.Counters(); c.Drops[DropNoGroup] != 2 || c.Delivered != 2 {
		t.Errorf("%v", named(&c))
	}
}

// sendToGroup posts a message to a group on address handle 9.
func (r *rig) sendToGroup(mgid wire.GID) {
	r.engine.Do(func() {
		source := ownGID
		if !mgid.IsIPv4() {
			source = wire.GID{0: 0xfd, 15: 1}
		}
		path := new(Path)
		path.set(r.engine, PathAttr{State: PathOpen, DestMAC: wire.MulticastMAC(mgid)})
		r.session.SetAH(9, &AH{PD: testPD, Path: path, Group: true, Dest: mgid, Template: wire.NewTemplate(wire.Path{Source: source, Dest: mgid})})
	})
	r.send.Put(&ring.Send{Opcode: ib.WRSend, AH: 9, RemoteQPN: wire.QPNMulticast, RemoteQKey: testQKey})
	r.send.Publish()
	r.doorbell.Ring(3)
	r.run()
}

// A message to a group is sent on the wire and to every member on this device, including the sending queue pair unless
// its NoSelfLoopback is set.
func TestGroupLoopback(t *testing.T) {
	for _, mgid := range []wire.GID{testGroup, testGroup6} {
		for _, blocked := range []bool{false, true} {
			r := newRig(t)
			other := r.member(0x10)
			r.engine.Do(func() { r.qp.NoSelfLoopback, other.qp.NoSelfLoopback = blocked, true })
			r.setGroup(mgid, r, other)
			r.postRecv(1, piece(0, 100))
			other.postRecv(2, piece(200, 100))
			r.sendToGroup(mgid)
			if got := other.completions(); len(got) != 1 || got[0].ID != 2 {
				t.Errorf("%v: the other member got %+v", mgid, got)
			}
			if got := r.completions(); (len(got) == 1) == blocked {
				t.Errorf("%v, blocked %v: the sender got %+v", mgid, blocked, got)
			}
			p := r.sent()
			if p.Destination() != mgid || p.BTH().DestQP() != wire.QPNMulticast {
				t.Errorf("%v went out to %v, %v", mgid, p.Destination(), p.BTH().DestQP())
			}
			if c := r.engine.Counters(); c.Received+c.Copies != c.Delivered+c.Dropped() || (c.Drops[DropSelfLoopback] == 1) != blocked {
				t.Errorf("%+v", c)
			}
		}
	}
}

// Without local members a group message is sent on the wire only, and counted only as sent.
func TestGroupWithoutLocalMembers(t *testing.T) {
	r := newRig(t)
	r.sendToGroup(testGroup)
	r.sent()
	if c := r.engine.Counters(); c.Sent != 1 || c.Loopback != 0 || c.Received != 0 || c.Dropped() != 0 {
		t.Errorf("%+v", c)
	}
}

// A group message that a switch reflects is dropped: it was delivered when it was sent.
func TestOwnGroupMessageReflected(t *testing.T) {
	r := newRig(t)
	r.setGroup(testGroup, r)
	r.postRecv(1, piece(0, 100))
	d := defaultDatagram()
	d.DestQP = wire.QPNMulticast
	r.link.in = [][]byte{datagramFrom(wire.Path{Source: ownGID, Dest: testGroup}, d, nil)}
	r.run()
	if c := r.engine.Counters(); c.Drops[DropOwnSource] != 1 || c.Dropped() != 1 || r.completions() != nil {
		t.Errorf("%v", named(&c))
	}
}
