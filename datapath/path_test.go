// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// sendOn posts n datagrams of one byte on an address handle and runs the engine.
func (r *rig) sendOn(handle uint32, n int) {
	r.Helper()
	for range n {
		r.postSend(ring.Send{AH: handle, Flags: ib.SendSignaled}, piece(0, 1))
	}
	r.run()
}

// resolving returns an address handle whose neighbour is not resolved.
func (r *rig) resolving(handle uint32) *Path {
	var path *Path
	r.engine.Do(func() {
		ah := r.ah(PathAttr{State: PathResolving}, peerGID)
		path = ah.Path
		r.session.SetAH(handle, ah)
	})
	return path
}

func (r *rig) setPath(p *Path, w PathAttr) { r.engine.Do(func() { p.set(r.engine, w) }) }

// Packets wait for the neighbour's address, and are then sent to it in order.
func TestPacketsWaitForTheNeighbour(t *testing.T) {
	r := newRig(t)
	path := r.resolving(5)
	r.sendOn(5, 3)
	if len(r.link.out) != 0 || path.Waiting() != 3 {
		t.Fatalf("%d sent, %d wait", len(r.link.out), path.Waiting())
	}
	if got := r.completions(); len(got) != 3 || got[0].Status != ib.WCSuccess {
		t.Fatalf("completions %+v", got)
	}
	r.setPath(path, PathAttr{State: PathResolving})
	if c := r.engine.Counters(); path.Waiting() != 3 || c.Dropped() != 0 {
		t.Fatalf("%d wait while the neighbour is resolved again, %v", path.Waiting(), named(&c))
	}
	mac, own := wire.MAC{2, 0, 0, 0, 0, 9}, wire.MAC{2, 1}
	r.setPath(path, PathAttr{State: PathOpen, DestMAC: mac, FromMAC: own})
	r.sendOn(5, 1)
	if len(r.link.out) != 4 || path.Waiting() != 0 {
		t.Fatalf("%d sent, %d wait", len(r.link.out), path.Waiting())
	}
	for i, frame := range r.link.out {
		var p wire.Packet
		if fault := wire.Parse(frame, &p); fault != wire.FaultNone || !p.CheckICRC() || wire.MAC(frame[:6]) != mac || wire.MAC(frame[6:12]) != own {
			t.Errorf("packet %d to %x from %x: %v", i, frame[:6], frame[6:12], fault)
		}
		if psn := p.BTH().PSN(); psn != wire.PSN(i) {
			t.Errorf("packet %d has PSN %v", i, psn)
		}
	}
	if c := r.engine.Counters(); c.Sent != 4 || c.Dropped() != 0 {
		t.Errorf("%v", named(&c))
	}
}

// Packets that can no longer be sent are dropped under a named reason.
func TestWaitingPacketsAreCounted(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(r *rig, p *Path)
		want Drop
	}{
		"the neighbour does not answer": {func(r *rig, p *Path) { r.setPath(p, PathAttr{}) }, DropUnreachable},
		"the destination is here now":   {func(r *rig, p *Path) { r.setPath(p, PathAttr{State: PathLocal}) }, DropUnreachable},
		"the link is down": {func(r *rig, p *Path) {
			r.engine.Do(func() { r.engine.setLink(false) })
			r.setPath(p, PathAttr{State: PathOpen})
		}, DropLinkDown},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			path := r.resolving(5)
			r.sendOn(5, 3)
			row.end(r, path)
			if c := r.engine.Counters(); c.Drops[row.want] != 3 || c.Dropped() != 3 || len(r.link.out) != 0 || path.Waiting() != 0 {
				t.Errorf("%v, %d sent", named(&c), len(r.link.out))
			}
		})
	}
}

// The number of waiting packets is limited, per neighbour and in total.
func TestWaitingPacketsHaveLimits(t *testing.T) {
	r := newRig(t)
	const neighbours = maxHeld/maxWaiting + 2
	paths := make([]*Path, neighbours)
	for i := range paths {
		paths[i] = r.resolving(uint32(10 + i))
		for sent := 0; sent < maxWaiting+1; sent += rigDepth / 2 {
			r.sendOn(uint32(10+i), min(rigDepth/2, maxWaiting+1-sent))
			r.completions()
		}
		if want := min(maxWaiting, maxHeld-i*maxWaiting); paths[i].Waiting() != max(want, 0) {
			t.Fatalf("neighbour %d: %d wait, want %d", i, paths[i].Waiting(), want)
		}
	}
	over := uint64(neighbours*(maxWaiting+1) - maxHeld)
	if c := r.engine.Counters(); c.Drops[DropUnresolved] != over || c.Dropped() != over {
		t.Errorf("%v, want %d", named(&c), over)
	}
	for _, p := range paths {
		r.setPath(p, PathAttr{})
	}
	path := r.resolving(5)
	r.sendOn(5, 1)
	if path.Waiting() != 1 {
		t.Error("dropped packets still occupy room")
	}
}

// A message longer than its route's MTU is dropped as DropPathMTU; one of exactly that length is sent.
func TestPathMTU(t *testing.T) {
	r := newRig(t)
	r.engine.Do(func() { r.session.SetAH(5, r.ah(PathAttr{State: PathOpen, MTU: wire.MTU256}, peerGID)) })
	for _, length := range []uint32{256, 257} {
		r.postSend(ring.Send{AH: 5}, ib.SGE{Length: length, LKey: testKey(1)})
	}
	r.run()
	if c := r.engine.Counters(); len(r.link.out) != 1 || c.Drops[DropPathMTU] != 1 || c.Sent != 2 {
		t.Errorf("%d sent, %v", len(r.link.out), named(&c))
	}
}
