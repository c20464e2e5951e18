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
	Index     uint32 // the interface's
	Speed     int    // Mbit/s; 0 if it is not known
	Enabled   bool   // by the administrator
	Up        bool   // and there is a carrier
	MTU       int    // bytes
	MAC       wire.MAC
	MACs      []wire.MAC // destination MACs of unicast frames for the port; none stands for any
	Addresses []netip.Addr
	// Broadcasts are those of the addresses' subnets.
	Broadcasts []netip.Addr
	// Carried is the RDMA MTU that the link can carry now, and Most what it can come to carry.
	Carried, Most wire.MTU
	Trains        bool   // bursts leave in trains
	NoTrains      string // why not
	Lost          error  // a receive queue has no socket: the port is down
	Stuck         error  // why Carried is not what the MTU allows
	// Egress are the VLAN priorities of packets.
	Egress host.Egress
	// SourcePorts are the UDP source ports of packets. They stay as they are.
	SourcePorts wire.SourcePorts
	// InMemory says that frames never leave memory, and so need no ICRC. It stays as it is.
	InMemory bool
}

// RDMAMTU is the largest RDMA MTU, up to Carried, that fits the port's MTU; verbs.ErrInvalid if none does.
func (p *Port) RDMAMTU() (wire.MTU, error) {
	fits := min(wire.MTUFor(p.MTU), p.Carried)
	if fits == 0 {
		return 0, fmt.Errorf("%w: MTU %d is too small for any RDMA MTU: the smallest, 256, needs %d; ip link set dev %s mtu 1500",
			verbs.ErrInvalid, p.MTU, wire.MTU256.Bytes()+wire.MTUOverhead, p.Name)
	}
	return fits, nil
}

// Routes is what is asked about the way to a destination. An error means that the host could not be
// asked, and says nothing about the answer, except for the errors that are named here.
type Routes interface {
	// Route gives the route from one of the card's addresses to a destination: host.ErrNoRoute,
	// host.ErrLocal.
	Route(source, dest netip.Addr) (host.Route, error)
	// Neighbour gives what the host knows of a next hop now.
	Neighbour(hop netip.Addr) (Neighbour, error)
	// Hold has the host ask a next hop for its MAC at once, and keep the answer up to date until
	// Release. A second call has it ask again. After Release the host forgets a next hop that has not
	// answered.
	Hold(hop netip.Addr) error
	Release(hop netip.Addr)
}

// Neighbour is what the host knows of a next hop.
type Neighbour struct {
	MAC    wire.MAC
	Known  bool // MAC is valid
	Failed bool // it was asked and has not answered
	Absent bool // the host has no entry for it
}
