//go:build linux

package hca

import (
	"net/netip"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca/network"
	"golang.org/x/sys/unix"
)

// surroundings is what a card asks of the host that it is on. An error means that the host could not
// be asked, and says nothing about the answer, except for the errors that are named here.
type surroundings interface {
	// port gives the interface's present state; errInterfaceGone if it does not exist any more in
	// this network namespace.
	port() (portStatus, error)
	network.Routes
	// source gives the address that the host would send from to a destination, if the way there leads
	// through the interface; zero if it leaves that open. host.ErrNoRoute, host.ErrLocal.
	source(dest netip.Addr) (netip.Addr, error)
	// portSpaces are those of the interface's network namespace.
	portSpaces() *ports
	// join makes the host a member of a group. Each join needs a leave; the last one ends the
	// membership.
	join(group netip.Addr) error
	leave(group netip.Addr) error
	// follow tells changes what changed on the host, until interrupt; listen tells what routers say of
	// packets that were sent until then.
	follow(changes *pendingChanges)
	listen(tell func(host.TooBig))
	interrupt()
	// describe names the modes of XDP and AF_XDP.
	describe() (xdp, socket string)
	close() error
}

var errInterfaceGone = errno.New("the interface has gone; open the device again when it is back", unix.ENODEV)

// portStatus is the state of an interface.
type portStatus struct {
	name      string
	index     uint32 // the interface's
	speed     int    // Mbit/s; 0 if it is not known
	enabled   bool   // by the administrator
	up        bool   // and there is a carrier
	mtu       int    // bytes
	mac       wire.MAC
	macs      []wire.MAC // destination MACs of unicast frames for the port; none stands for any
	addresses []netip.Addr
	// broadcasts are those of the addresses' subnets.
	broadcasts []netip.Addr
	trains     link.Trains
	noTrains   string // why frames do not leave in trains
	// receiveQueues is how many receive queues there are; 0 if the driver does not say.
	receiveQueues int
	lost          error // a receive queue has no socket: the port is down
	stuck         error // why the RDMA MTU is not what the interface's allows
}

// steering decides which packets reach the engine: *bpf.Steering, or noSteering on a wire in memory.
type steering interface {
	AddQP(number uint32) error
	RemoveQP(number uint32) error
	AddAddress(netip.Addr) error
	RemoveAddress(netip.Addr) error
	AddBroadcast(netip.Addr) error
	RemoveBroadcast(netip.Addr) error
	SetMACs(...[6]byte) error
	AddGroup(netip.Addr) error
	RemoveGroup(netip.Addr) error
	Counters() (bpf.Counters, error)
	// Check returns bpf.ErrDetached if the program is not attached any more.
	Check() error
}

type noSteering struct{}

func (noSteering) AddQP(uint32) error               { return nil }
func (noSteering) RemoveQP(uint32) error            { return nil }
func (noSteering) AddAddress(netip.Addr) error      { return nil }
func (noSteering) RemoveAddress(netip.Addr) error   { return nil }
func (noSteering) AddBroadcast(netip.Addr) error    { return nil }
func (noSteering) RemoveBroadcast(netip.Addr) error { return nil }
func (noSteering) SetMACs(...[6]byte) error         { return nil }
func (noSteering) AddGroup(netip.Addr) error        { return nil }
func (noSteering) RemoveGroup(netip.Addr) error     { return nil }
func (noSteering) Check() error                     { return nil }
func (noSteering) Counters() (c bpf.Counters, err error) {
	return c, nil
}
