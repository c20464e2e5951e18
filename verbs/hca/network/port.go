// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
)

// Port is the state of a port.
type Port struct {
	Name      string
	Index     uint32 // of the interface
	Speed     int    // Mbit/s; 0 if unknown
	Enabled   bool   // by the administrator
	Up        bool   // enabled, with a carrier
	MTU       int    // bytes
	MAC       wire.MAC
	MACs      []wire.MAC // destination MACs of unicast frames for the port; empty for any
	Addresses []netip.Addr
	// Broadcasts has the broadcast addresses of the addresses' subnets.
	Broadcasts []netip.Addr
	// Carried is the RDMA MTU that the link can carry now, and Most the largest that it could carry.
	Carried, Most wire.MTU
	Trains        bool   // bursts leave in trains
	NoTrains      string // the reason, without trains
	Lost          error  // a receive queue has no socket: the port is down
	Stuck         error  // the reason why Carried is not the RDMA MTU that the MTU allows
	// Egress has the VLAN priorities of packets.
	Egress host.Egress
	// SourcePorts has the UDP source ports of packets. They do not change.
	SourcePorts wire.SourcePorts
	// InMemory is set if frames never leave memory, and so need no ICRC. It does not change.
	InMemory bool
}

// RDMAMTU returns the largest RDMA MTU, up to Carried, that fits the port's MTU. It returns verbs.ErrInvalid if none
// fits.
func (p *Port) RDMAMTU() (wire.MTU, error) {
	fits := min(wire.MTUFor(p.MTU), p.Carried)
	if fits == 0 {
		return 0, fmt.Errorf("%w: MTU %d is too small for any RDMA MTU: the smallest, 256, needs %d; ip link set dev %s mtu 1500",
			verbs.ErrInvalid, p.MTU, wire.MTU256.Bytes()+wire.MTUOverhead, p.Name)
	}
	return fits, nil
}

// Routes resolves routes and next hops. Except for the named errors, an error means that a query failed; it is not
// evidence of any state.
type Routes interface {
	// Route returns the route from one of the card's addresses to a destination. Errors: host.ErrNoRoute,
	// host.ErrLocal.
	Route(source, dest netip.Addr) (host.Route, error)
	// Neighbour returns the host's current entry for a next hop.
	Neighbour(hop netip.Addr) (Neighbour, error)
	// Hold makes the host query a next hop for its MAC immediately, and keep the entry up to date until Release. A
	// second call repeats the query. After Release the host forgets a next hop that has not responded.
	Hold(hop netip.Addr) error
	Release(hop netip.Addr)
}

// Neighbour is the host's entry for a next hop.
type Neighbour struct {
	MAC    wire.MAC
	Known  bool // MAC is valid
	Failed bool // it was queried and has not responded
	Absent bool // the host has no entry for it
}
