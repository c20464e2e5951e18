// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/wire/wiretest"
)

// toHostGroup returns a packet to a group whose packets never leave a host.
func toHostGroup(payload []byte) []byte {
	d := defaultDatagram()
	d.DestQP = wire.QPNMulticast
	return datagramFrom(wire.Path{Source: gidOf("fd00::2"), Dest: hostGroup}, d, payload)
}

// inIPv6 returns a packet with an IPv6 header and any addresses, including IPv4-mapped ones.
func inIPv6(source, dest string, payload []byte) []byte {
	frame := datagramFrom(wire.Path{Source: gidOf("fd00::2"), Dest: ownGID6}, defaultDatagram(), payload)
	from, to := netip.MustParseAddr(source).As16(), netip.MustParseAddr(dest).As16()
	copy(frame[wiretest.IP+8:], from[:])
	copy(frame[wiretest.IP+24:], to[:])
	return wiretest.Reseal6(frame)
}

// Packets with unusual but valid source addresses are delivered.
func TestUnusualSources(t *testing.T) {
	for _, source := range []string{"0.0.0.1", "126.255.255.255", "128.0.0.0", "240.0.0.1", "255.255.255.254", "10.0.1.255"} {
		r := newRig(t)
		r.postRecv(1, piece(0, 100))
		r.link.in = [][]byte{datagramFrom(wire.Path{Source: gidOf(source), Dest: ownGID, DestMAC: wire.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, defaultDatagram(), nil)}
		r.run()
		if c := r.engine.Counters(); c.Delivered != 1 {
			t.Errorf("%s: %v", source, named(&c))
		}
	}
}

// A MAC or an address that is added or removed takes effect with the next packet.
func TestMACsAndBroadcastsChange(t *testing.T) {
	r := newRig(t)
	frame := datagramFrom(wire.Path{Source: gidOf("10.0.0.255"), Dest: ownGID, DestMAC: wire.MAC{2, 9}}, defaultDatagram(), nil)
	for i, step := range []struct {
		change func(e *Engine)
		want   Drop
	}{
		{func(*Engine) {}, DropOtherHost},
		{func(e *Engine) { e.tables.setMACs(wire.MAC{}, wire.MAC{2, 9}) }, DropMartianSource},
		{func(e *Engine) { e.tables.setBroadcasts(nil) }, DropNoReceive},
		{func(e *Engine) { e.tables.setBroadcasts([]wire.GID{gidOf("10.0.0.255")}) }, DropMartianSource},
		{func(e *Engine) { e.tables.setMACs(wire.MAC{2, 8}) }, DropOtherHost},
	} {
		r.engine.Do(func() { step.change(r.engine) })
		before := r.engine.Counters().Drops[step.want]
		r.link.in = [][]byte{bytes.Clone(frame)}
		r.run()
		if c := r.engine.Counters(); c.Drops[step.want] != before+1 {
			t.Errorf("step %d: %v, want %v", i, named(&c), step.want)
		}
	}
}

// A device with a VLAN accepts the frames of that VLAN, and one without a VLAN untagged frames.
func TestVLANOfTheDevice(t *testing.T) {
	for _, row := range []struct {
		device, frame uint16
		taken         bool
	}{{0, 0, true}, {0, 5, false}, {5, 5, true}, {5, 0, false}, {5, 6, false}} {
		r := newRig(t)
		r.engine.tables.vlan = row.device
		r.postRecv(1, piece(0, 100))
		r.link.in = [][]byte{datagramFrom(wire.Path{Source: peerGID, Dest: ownGID, VLAN: row.frame}, defaultDatagram(), nil)}
		r.run()
		if c := r.engine.Counters(); (c.Delivered == 1) != row.taken || (c.Drops[DropVLAN] == 1) == row.taken {
			t.Errorf("device of VLAN %d, frame of VLAN %d: %v", row.device, row.frame, named(&c))
		}
	}
}
