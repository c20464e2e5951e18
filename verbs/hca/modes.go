package hca

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/mcast/membership"
	"github.com/roced/roced/verbs"
)

// XDPMode is where the steering program runs, by the name that a user gives it. The zero value
// is XDPAuto.
type XDPMode string

// The modes of XDP.
const (
	XDPAuto    XDPMode = "auto"    // native, or generic where that is not to be had
	XDPNative  XDPMode = "native"  // in the driver, before a socket buffer is made
	XDPGeneric XDPMode = "generic" // in the network stack: on any interface, slowly
)

// SocketMode is how AF_XDP sockets move frames, by its name. The zero value is SocketAuto.
type SocketMode string

// The modes of AF_XDP.
const (
	SocketAuto     SocketMode = "auto"      // without copying where the driver can, else copying
	SocketCopy     SocketMode = "copy"      // the kernel copies each frame
	SocketZeroCopy SocketMode = "zero-copy" // the NIC reads and writes the frames, or Open fails
)

// MembershipMethod is how the host is made a member of an IPv4 group, by its name; IPv6 groups are
// always joined by sockets. The zero value is MembershipAuto.
type MembershipMethod string

// The methods.
const (
	// MembershipAuto is MembershipNetlink as far as it goes, then MembershipSocket.
	MembershipAuto MembershipMethod = "auto"
	// MembershipNetlink gives the interface the group's address, with autojoin (ip-address(8)).
	// All such addresses of a namespace share net.ipv4.igmp_max_memberships, 20 as shipped.
	MembershipNetlink MembershipMethod = "netlink"
	// MembershipSocket opens a UDP socket for each group. It costs a file descriptor.
	MembershipSocket MembershipMethod = "socket"
)

// modes are what the names mean, in the packages below.
type modes struct {
	xdp        bpf.Mode
	socket     xsk.Mode
	membership membership.Method
}

// find gives the number that a name stands for: the place of it in the list. The first is the default.
func find[Name ~string, Number ~int](what string, name Name, names ...Name) (Number, error) {
	if name == "" {
		return 0, nil
	}
	place := slices.Index(names, name)
	if place < 0 {
		list := fmt.Sprint(names)
		return 0, fmt.Errorf("%w: %s %q: one of %s", verbs.ErrInvalid, what, name, strings.ReplaceAll(list[1:len(list)-1], " ", ", "))
	}
	return Number(place), nil
}

// modes finds out what the options' names mean.
func (o *options) modes() (m modes, err error) {
	if m.xdp, err = find[XDPMode, bpf.Mode]("XDP mode", o.xdp, XDPAuto, XDPNative, XDPGeneric); err != nil {
		return m, err
	}
	if m.socket, err = find[SocketMode, xsk.Mode]("AF_XDP mode", o.socket, SocketAuto, SocketCopy, SocketZeroCopy); err != nil {
		return m, err
	}
	m.membership, err = find[MembershipMethod, membership.Method]("membership method", o.membership, MembershipAuto, MembershipNetlink, MembershipSocket)
	return m, err
}
