package network

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
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
}
