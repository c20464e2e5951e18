package hca

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// kernelHost is the host as the kernel tells it over netlink.
type kernelHost struct {
	netlink  *netlink.Handle
	news     *nl.NetlinkSocket // what changes, for the follower
	name     string
	index    int // of the interface that has the addresses
	steering *bpf.Steering
	socket   xsk.Info
	tuned    func() error // puts the kernel's knobs back
	// memberships are of groups; opening them removes what a killed process left.
	memberships *mcast.Memberships

	mu      sync.Mutex
	managed map[netip.Addr]int // users of each neighbour that the kernel keeps fresh for us
}

// port implements host.
func (h *kernelHost) port() (portStatus, error) {
	link, err := h.netlink.LinkByIndex(h.index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return portStatus{}, fmt.Errorf("%s: %w", h.name, errInterfaceGone)
	}
	if err != nil {
		return portStatus{}, fmt.Errorf("interface %s: %w", h.name, err)
	}
	attrs := link.Attrs()
	status := portStatus{up: isUp(attrs), mtu: attrs.MTU}
	copy(status.mac[:], attrs.HardwareAddr)
	list, err := whole(func() ([]netlink.Addr, error) { return h.netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return portStatus{}, fmt.Errorf("addresses of %s: %w", h.name, err)
	}
	for _, a := range list {
		const unusable = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED
		if address, ok := netip.AddrFromSlice(a.IP); ok && a.Flags&unusable == 0 {
			status.addresses = append(status.addresses, address.Unmap())
		}
	}
	return status, nil
}

func isUp(attrs *netlink.LinkAttrs) bool {
	return attrs.RawFlags&unix.IFF_UP != 0 && attrs.RawFlags&unix.IFF_LOWER_UP != 0
}

// way implements host. Groups have neither route nor neighbour.
func (h *kernelHost) way(source, dest netip.Addr) (nextHop, error) {
	if dest.IsMulticast() {
		return nextHop{mac: wire.MulticastMAC(wire.GIDFromAddr(dest)), reachable: true}, nil
	}
	address, err := h.route(source, dest)
	if err != nil {
		return nextHop{}, err
	}
	return h.known(address), nil
}

// route finds the address of the neighbour that leads to dest through this interface.
func (h *kernelHost) route(source, dest netip.Addr) (netip.Addr, error) {
	ask := netlink.RouteGetOptions{SrcAddr: source.AsSlice()}
	routes, err := h.netlink.RouteGetWithOptions(dest.AsSlice(), &ask)
	if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
		return netip.Addr{}, fmt.Errorf("%w: %v is an address of this host, but not of %s: devices of one host do not reach each other; send from the device that has it",
			verbs.ErrUnreachable, dest, h.name)
	}
	// Asked for an interface, the kernel takes whatever no IPv4 route matches to be on
	// its link. So the match is asked for first.
	ask.OifIndex, ask.FIBMatch = h.index, true
	if _, err = h.netlink.RouteGetWithOptions(dest.AsSlice(), &ask); err == nil {
		ask.FIBMatch = false
		routes, err = h.netlink.RouteGetWithOptions(dest.AsSlice(), &ask)
	}
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("%w: no route to %v from %v through %s (%v); ip route get %v oif %[4]s", verbs.ErrUnreachable, dest, source, h.name, err, dest)
	case len(routes) == 0 || routes[0].Type != unix.RTN_UNICAST || routes[0].LinkIndex != h.index:
		return netip.Addr{}, fmt.Errorf("%w: %v is not reached through %s; ip route get %v oif %[3]s", verbs.ErrUnreachable, dest, h.name, dest)
	}
	return gatewayOf(&routes[0], dest), nil
}

// gatewayOf is a route's next hop, which is the destination itself on the same link.
func gatewayOf(route *netlink.Route, dest netip.Addr) netip.Addr {
	if gateway, ok := netip.AddrFromSlice(route.Gw); ok {
		return gateway.Unmap()
	}
	if via, ok := route.Via.(*netlink.Via); ok {
		if gateway, ok := netip.AddrFromSlice(via.Addr); ok {
			return gateway.Unmap()
		}
	}
	return dest
}

// dumpTries is how often a list is read that the kernel changed meanwhile.
const dumpTries = 5

// whole reads a list until it is of one piece: the kernel says when it changed on the way.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range dumpTries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

// join implements host.
func (h *kernelHost) join(group netip.Addr) error { return h.memberships.Join(group) }

// leave implements host.
func (h *kernelHost) leave(group netip.Addr) error { return h.memberships.Leave(group) }

// describe implements host.
func (h *kernelHost) describe() (xdp, socket string) {
	socket = "copy"
	if h.socket.ZeroCopy {
		socket = "zero-copy"
	}
	return h.steering.AttachedMode().String(), socket
}

// close implements host.
func (h *kernelHost) close() error {
	h.mu.Lock()
	for address := range h.managed {
		_ = h.setManaged(address, 0)
	}
	h.managed = nil
	h.mu.Unlock()
	err := errors.Join(h.memberships.Close(), h.steering.Close(), h.tuned())
	h.news.Close() // again, unless nobody followed
	h.netlink.Close()
	return err
}
