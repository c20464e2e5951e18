package hca

import (
	"errors"
	"net/netip"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/wire"
)

// host is what a device must know of the machine that it is in.
type host interface {
	// port tells how the interface stands now; errInterfaceGone if it does not exist
	// any more, in this network namespace.
	port() (portStatus, error)
	// way is where packets from one of the device's addresses to a destination go,
	// as far as is known without asking anybody.
	way(source, dest netip.Addr) (nextHop, error)
	// hold has a next hop asked for, and kept fresh until it is released as often.
	hold(hop netip.Addr) error
	release(hop netip.Addr)
	// renew has a next hop that is held asked for again.
	renew(hop netip.Addr)
	// await waits until a next hop that is held has answered: ErrUnreachable if it
	// does not, ErrClosed when stop is closed before.
	await(hop, dest netip.Addr, stop <-chan struct{}) error
	// join makes the host a member of a group, for the first that asks; leave ends
	// that for the last.
	join(group netip.Addr) error
	leave(group netip.Addr) error
	// follow calls the device back until stop is closed: changed when addresses,
	// routes or the interface may have, neighbour when one has.
	follow(stop <-chan struct{}, changed func(), neighbour func(nextHop))
	// interrupt is called when stop has been closed, to wake the follower.
	interrupt()
	// describe names the modes that XDP and AF_XDP are in.
	describe() (xdp, socket string)
	close() error
}

var errInterfaceGone = errors.New("the interface has gone; open the device again when it is back")

// portStatus is how an interface stands.
type portStatus struct {
	up        bool
	mtu       int // bytes
	mac       wire.MAC
	addresses []netip.Addr
}

// nextHop is the neighbour that packets to a destination are handed to.
type nextHop struct {
	address   netip.Addr // invalid where there is nobody to ask: groups
	mac       wire.MAC
	reachable bool
}

// steering decides what reaches the engine; *bpf.Steering, or nothing on a wire in memory.
type steering interface {
	AddQP(number uint32) error
	RemoveQP(number uint32) error
	AddAddress(netip.Addr) error
	RemoveAddress(netip.Addr) error
	AddGroup(netip.Addr) error
	RemoveGroup(netip.Addr) error
	Counters() (bpf.Counters, error)
}

type noSteering struct{}

func (noSteering) AddQP(uint32) error             { return nil }
func (noSteering) RemoveQP(uint32) error          { return nil }
func (noSteering) AddAddress(netip.Addr) error    { return nil }
func (noSteering) RemoveAddress(netip.Addr) error { return nil }
func (noSteering) AddGroup(netip.Addr) error      { return nil }
func (noSteering) RemoveGroup(netip.Addr) error   { return nil }
func (noSteering) Counters() (c bpf.Counters, err error) {
	return c, nil
}
