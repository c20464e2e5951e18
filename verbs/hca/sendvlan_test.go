// SPDX-License-Identifier: Apache-2.0

//go:build vlan

package hca

import (
	"fmt"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
)

// Packets sent in trains on a VLAN interface each have its tag on the wire.
func TestTrainsInAVLAN(t *testing.T) {
	hosts := labtest.Switched(t)
	check(t, hosts.Bridge.CarryVLANs(hosts.PortA, hosts.PortB))
	addVLAN(t, &hosts.PairLab)
	l := &stations{&hosts.PairLab,
		deepen(newStation(t, openVLAN(t, hosts.A, WithSendMode(SendTrains)))), deepen(newStation(t, openVLAN(t, hosts.B)))}
	toB := newSnifferOn(t, hosts.Bridge.Namespace, hosts.PortB)
	expectTrains(t, l, "10.42.0.2", "fd42::2")
	if n := taggedPackets(toB); n != 2*4*8*window {
		t.Errorf("got %d packets with the VLAN's tag", n)
	}
}

// taggedPackets counts the packets that a port has sent, and checks their VLAN.
func taggedPackets(s *sniffer) (count int) {
	s.Helper()
	for frame, err := range s.Frames() {
		check(s, err)
		var p wire.Packet
		if !frame.Outgoing || wire.Parse(frame.Data, &p) == wire.FaultNotRoCE {
			continue
		}
		if tag, _ := untag(frame.Data); tag != vlanID || frame.Unfinished.Train() || !p.CheckICRC() {
			s.Errorf("got VLAN %d, %d bytes, or a wrong ICRC", tag, len(frame.Data))
		}
		count++
	}
	return count
}

// In automatic mode a VLAN's card uses trains if the interface below it would.
func TestAutomaticTrainsInAVLAN(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	sendsAs(t, l.a.device, cutting())
	deepen(l.a)
	deepen(l.b)
	expectTrains(t, l, "10.42.0.2", "fd42::2")
}

// A bond of any mode passes trains to its slave, which segments them for a receiver with native XDP.
func TestTrainsOverABond(t *testing.T) {
	for _, mode := range bondModes {
		t.Run(mode.String(), func(t *testing.T) {
			hosts := labtest.Pair(t)
			addBond(t, hosts.A, mode)
			for i, place := range []struct {
				host *lab.Namespace
				name string
			}{{hosts.A, "bond0"}, {hosts.B, "eth0"}} {
				check(t, place.host.AddAddress(place.name, fmt.Sprintf("10.99.0.%d/24", i+1)))
				check(t, place.host.AddAddress(place.name, fmt.Sprintf("fd99::%d/64", i+1)))
			}
			b := deepen(newStation(t, open(t, hosts.B)))
			a := deepen(openNamed(t, hosts.A, "bond0", WithSendMode(SendTrains)))
			expectTrains(t, &stations{hosts, a, b}, "10.99.0.2", "fd99::2")
		})
	}
}

// In automatic mode there are no trains on a bond: a receiving bond has generic XDP, and would lose them.
func TestNoAutomaticTrainsOverABond(t *testing.T) {
	hosts := newBonds(t, netlink.BOND_MODE_ACTIVE_BACKUP)
	a, b := deepen(openNamed(t, hosts.A, "bond0")), deepen(openNamed(t, hosts.B, "bond0"))
	ah := a.ah("10.99.0.2")
	if n := inTrains(t, a.device, func() { windows(t, a, b, ah, 256, 8) }); n != 0 {
		t.Errorf("got %d packets in trains (the kernel supports them: %t)", n, link.KernelCutsTrains())
	}
	lossless(t, a, b)
}
