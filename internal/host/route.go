// SPDX-License-Identifier: Apache-2.0

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

// Route is the route to a destination through the interface.
type Route struct {
	Hop netip.Addr // the next hop: a gateway, or the destination itself
	MTU int        // of the route, in bytes; 0 if not set
}

var (
	// ErrNoRoute reports that the kernel has no route to the destination through the interface.
	ErrNoRoute = errno.New("no route", unix.ENETUNREACH)
	// ErrLocal reports that the destination is an address of this host.
	ErrLocal = errno.New("address of this host", unix.EHOSTUNREACH)
)

// Route returns the route from an address of the interface to a destination. Errors other than ErrNoRoute and
// ErrLocal mean that the query failed, and do not imply that there is no route.
func (q *Queries) Route(source, dest netip.Addr) (Route, error) {
	request := netlink.RouteGetOptions{SrcAddr: source.AsSlice()}
	if dest.IsLinkLocalUnicast() {
		request.OifIndex = q.index // the same address may be on the link of another interface
	}
	routes, err := q.handle.RouteGetWithOptions(dest.AsSlice(), &request)
	if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
		return Route{}, ErrLocal
	}
	// For a route through an interface, the kernel treats IPv4 destinations without a matching route as
	// on-link. Therefore query the matching route first.
	request.OifIndex, request.FIBMatch = q.index, true
	matched, err := q.handle.RouteGetWithOptions(dest.AsSlice(), &request)
	if err == nil {
		request.FIBMatch = false
		routes, err = q.handle.RouteGetWithOptions(dest.AsSlice(), &request)
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

var errElsewhere = errors.New("the route uses another interface")

// noRoute wraps ErrNoRoute with the cause and the command that shows the route.
func noRoute(why error, dest netip.Addr) error {
	return fmt.Errorf("%w: %w; ip route get %v", ErrNoRoute, why, dest)
}

// mtuOf returns the MTU that the administrator has set for a route. The effective route may have an MTU from a router's
// report, which can be forged.
func mtuOf(matched []netlink.Route) int {
	if len(matched) == 0 {
		return 0
	}
	return matched[0].MTU
}

// Source returns the source address that the host uses for a destination or group. It returns ErrNoRoute if
// the route uses another interface or does not exist, ErrLocal if the destination is an address of the host.
// The address is zero if the route does not specify one, or if the kernel would use a group's address, which
// is the interface's first address after that of the host was removed and added again.
func (q *Queries) Source(dest netip.Addr) (netip.Addr, error) {
	request := netlink.RouteGetOptions{}
	if dest.IsLinkLocalUnicast() || dest.IsLinkLocalMulticast() && dest.Is6() {
		request.OifIndex = q.index
	}
	routes, err := q.handle.RouteGetWithOptions(dest.AsSlice(), &request)
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

// isNoRoute reports whether an error is the kernel's response that there is no route (fib_props,
// ip_route_output_key), as opposed to a failed query. EINVAL stands for a blackhole route or a source address
// that is not local.
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

// gatewayOf returns the next hop of a route: its gateway, or the destination if it is on-link.
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

// LocalRoute is a route of type local, through which the host accepts packets to an address. The kernel
// creates one for each address of an interface.
type LocalRoute struct {
	Dest  netip.Addr
	Table int // RT_TABLE_LOCAL, or that of a VRF
}

// LocalRoutes returns the local routes that the kernel has created for the interface's IPv4 addresses.
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
