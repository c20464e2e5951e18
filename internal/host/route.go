package host

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/internal/errno"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Route is the way of packets to a destination, through the interface.
type Route struct {
	Hop netip.Addr // the next hop: a gateway, or the destination itself
	MTU int        // of the route, in bytes; 0 if it has none of its own
}

var (
	// ErrNoRoute: the kernel has no route to the destination through the interface.
	ErrNoRoute = errno.New("no route", unix.ENETUNREACH)
	// ErrLocal: the destination is an address of this host.
	ErrLocal = errno.New("an address of this host", unix.EHOSTUNREACH)
)

// Route finds the route from an address of the interface to a destination. Errors other than
// ErrNoRoute and ErrLocal mean that the question failed, and say nothing about the route.
func (q *Queries) Route(source, dest netip.Addr) (Route, error) {
	ask := netlink.RouteGetOptions{SrcAddr: source.AsSlice()}
	if dest.IsLinkLocalUnicast() {
		ask.OifIndex = q.index // the same address may be on the link of another interface
	}
	routes, err := q.handle.RouteGetWithOptions(dest.AsSlice(), &ask)
	if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
		return Route{}, ErrLocal
	}
	// If asked for a route through an interface, the kernel treats IPv4 destinations that no
	// route matches as on the interface's link. So the matching route is asked for first.
	ask.OifIndex, ask.FIBMatch = q.index, true
	matched, err := q.handle.RouteGetWithOptions(dest.AsSlice(), &ask)
	if err == nil {
		ask.FIBMatch = false
		routes, err = q.handle.RouteGetWithOptions(dest.AsSlice(), &ask)
	}
	switch {
	case isNoRoute(err):
		return Route{}, noRoute(err, dest)
	case err != nil:
		return Route{}, err
	case len(routes) == 0 || routes[0].Type != unix.RTN_UNICAST || routes[0].LinkIndex != q.index:
		return Route{}, noRoute(errElsewhere, dest)
	}
	return Route{Hop: gatewayOf(&routes[0], dest), MTU: mtuOf(matched)}, nil
}

var errElsewhere = errors.New("it leads elsewhere")

// noRoute is ErrNoRoute, with why, and what shows the host's routes.
func noRoute(why error, dest netip.Addr) error {
	return fmt.Errorf("%w: %w; ip route get %v", ErrNoRoute, why, dest)
}

// mtuOf is the administrator's MTU of a route. The route that packets would take may have another, from a router's
// report, which anybody can forge.
func mtuOf(matched []netlink.Route) int {
	if len(matched) == 0 {
		return 0
	}
	return matched[0].MTU
}

// Source finds the address that the host sends from to a destination, a group included: ErrNoRoute if
// the host's routes lead there through another interface or nowhere, ErrLocal if it is the host's own. It
// is zero if the route does not say, or if the kernel would send from a group's address, which is the
// interface's first one after the host's own was removed and added again.
func (q *Queries) Source(dest netip.Addr) (netip.Addr, error) {
	ask := netlink.RouteGetOptions{}
	if dest.IsLinkLocalUnicast() || dest.IsLinkLocalMulticast() && dest.Is6() {
		ask.OifIndex = q.index
	}
	routes, err := q.handle.RouteGetWithOptions(dest.AsSlice(), &ask)
	switch {
	case isNoRoute(err):
		return netip.Addr{}, noRoute(err, dest)
	case err != nil:
		return netip.Addr{}, err
	case len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL:
		return netip.Addr{}, ErrLocal
	case len(routes) == 0 || routes[0].Type != unix.RTN_UNICAST && routes[0].Type != unix.RTN_MULTICAST || routes[0].LinkIndex != q.index:
		return netip.Addr{}, noRoute(errElsewhere, dest)
	}
	source, _ := netip.AddrFromSlice(routes[0].Src)
	if source.IsMulticast() {
		return netip.Addr{}, nil
	}
	return source.Unmap(), nil
}

// isNoRoute reports whether an error is the kernel's answer that there is no route (fib_props,
// ip_route_output_key), rather than a failure of the question. EINVAL stands for a blackhole route,
// or for a source address that is not ours.
func isNoRoute(err error) bool {
	for _, errno := range []error{
		unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EINVAL, unix.EACCES, unix.EADDRNOTAVAIL, unix.ENODEV, unix.ENETDOWN, unix.ESRCH,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// gatewayOf is the next hop of a route: its gateway, or the destination if that is on the link.
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

// LocalRoute is a route of type local, by which the host accepts packets to an address. The kernel
// makes one for each address of an interface.
type LocalRoute struct {
	Dest  netip.Addr
	Table int // RT_TABLE_LOCAL, or a VRF's
}

// LocalRoutes lists the local routes that the kernel has made for the interface's IPv4 addresses.
func (q *Queries) LocalRoutes() (list []LocalRoute, err error) {
	filter := &nl.RtMsg{RtMsg: unix.RtMsg{Family: unix.AF_INET, Type: unix.RTN_LOCAL, Protocol: unix.RTPROT_KERNEL}}
	answers, err := q.list(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, filter, nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(uint32(q.index))))
	if err != nil {
		return nil, fmt.Errorf("list local routes: %w", err)
	}
	for _, data := range answers {
		if dest, table, ok := parseRoute(data); ok && dest.IsSingleIP() {
			list = append(list, LocalRoute{dest.Addr(), table})
		}
	}
	return list, nil
}
