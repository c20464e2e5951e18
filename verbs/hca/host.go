package hca

import (
	"net/netip"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/internal/host"
	"golang.org/x/sys/unix"
)

// surroundings is what a device must know of the machine that it is in, and asks of it. An
// error says that the question failed, and nothing of what was asked, but where it is named.
type surroundings interface {
	// port tells how the interface stands now; errInterfaceGone if it does not exist
	// any more, in this network namespace.
	port() (portStatus, error)
	// route is where packets from one of the device's addresses to a destination go:
	// host.ErrNoRoute, host.ErrLocal.
	route(source, dest netip.Addr) (host.Route, error)
	// neighbour tells what is known of a next hop now.
	neighbour(hop netip.Addr) (hopStatus, error)
	// hold has a next hop looked for at once, and kept fresh until release. It may be called
	// again, to have it looked for anew.
	hold(hop netip.Addr) error
	release(hop netip.Addr)
	// join makes the host a member of a group, for the first that asks; leave ends
	// that for the last.
	join(group netip.Addr) error
	leave(group netip.Addr) error
	// follow tells changes what changed on the host, until interrupt; listen tells what routers say of
	// packets that were sent until then.
	follow(changes *pendingChanges)
	listen(tell func(host.TooBig))
	interrupt()
	// describe names the modes that XDP and AF_XDP are in.
	describe() (xdp, socket string)
	close() error
}

var errInterfaceGone = errno.New("the interface has gone; open the device again when it is back", unix.ENODEV)

// portStatus is how an interface stands.
type portStatus struct {
	enabled   bool // by the administrator
	up        bool // and there is a carrier
	mtu       int  // bytes
	mac       wire.MAC
	macs      []wire.MAC // that unicast frames for the port have; none: any
	addresses []netip.Addr
	// broadcasts are those of the addresses' subnets.
	broadcasts []netip.Addr
}

// hopStatus is what the host knows of a next hop.
type hopStatus struct {
	mac    wire.MAC
	known  bool // the MAC is
	failed bool // it was asked for, and has not answered
	absent bool // nobody looks for it
}

// steering decides what reaches the engine; *bpf.Steering, or nothing on a wire in memory.
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
	// Check is bpf.ErrDetached when nothing is steered any more.
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
