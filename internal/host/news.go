package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// News are told of what has changed, by a Follower.
type News interface {
	// Port is told of the interface itself, or its addresses.
	Port()
	// Route is told of a destination whose route may have changed.
	Route(dest netip.Prefix)
	// Routes is told when all destinations' may have: by a rule, for example.
	Routes()
	// Neighbour is told of a neighbour on the interface.
	Neighbour(address netip.Addr)
	// Missed is told when news were lost: everything may have changed.
	Missed()
}

// Follower listens to the kernel's news about one interface and its namespace's routes.
type Follower struct {
	socket *nl.NetlinkSocket
	index  int
	closed atomic.Bool
}

// Follow starts to listen in the calling thread's network namespace. News from now on are
// kept until Next reads them, as far as there is room.
func Follow(index int) (*Follower, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
		unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_NEXTHOP)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	if err := keepOwn(socket.GetFd(), index); err != nil {
		socket.Close()
		return nil, fmt.Errorf("netlink: filter: %w", err)
	}
	return &Follower{socket: socket, index: index}, nil
}

// ErrClosed is the error of Next after Close.
var ErrClosed = fmt.Errorf("the follower is closed: %w", unix.EBADF)

// Next waits for news and tells them. It fails only when there will be no more.
func (f *Follower) Next(news News) error {
	messages, _, err := f.socket.Receive()
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOBUFS):
		news.Missed()
		return nil
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return nil
	case f.closed.Load():
		return ErrClosed
	default:
		return fmt.Errorf("netlink: %w", err)
	}
	for _, m := range messages {
		f.tell(news, m)
	}
	return nil
}

// Close ends a Next that waits. Further calls do nothing.
func (f *Follower) Close() {
	if !f.closed.Swap(true) {
		f.socket.Close()
	}
}

func (f *Follower) tell(news News, m syscall.NetlinkMessage) {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		// With a family it is told as the port of a bridge.
		if len(m.Data) >= unix.SizeofIfInfomsg && m.Data[0] == unix.AF_UNSPEC && InterfaceOf(m.Data) == f.index {
			news.Port()
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if len(m.Data) >= unix.SizeofIfAddrmsg && InterfaceOf(m.Data) == f.index {
			news.Port()
		}
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		f.tellNeighbour(news, m.Data)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		tellRoute(news, m.Data)
	case unix.RTM_NEWRULE, unix.RTM_DELRULE, unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		news.Routes()
	}
}

// tellNeighbour passes over what a bridge forwards to: it has another family.
func (f *Follower) tellNeighbour(news News, data []byte) {
	if len(data) < sizeofNdMsg || InterfaceOf(data) != f.index || data[0] != unix.AF_INET && data[0] != unix.AF_INET6 {
		return
	}
	if address, ok := netip.AddrFromSlice(Attribute(data[sizeofNdMsg:], unix.NDA_DST)); ok {
		news.Neighbour(address.Unmap())
	}
}

func tellRoute(news News, data []byte) {
	if len(data) < unix.SizeofRtMsg {
		return
	}
	family, bits := data[0], int(data[1])
	address, ok := netip.AddrFromSlice(Attribute(data[unix.SizeofRtMsg:], unix.RTA_DST))
	switch {
	case ok:
	case family == unix.AF_INET:
		address = netip.IPv4Unspecified()
	case family == unix.AF_INET6:
		address = netip.IPv6Unspecified()
	default:
		return // multicast routing
	}
	if dest, err := address.Prefix(bits); err == nil {
		news.Route(dest)
	}
}

// sizeofNdMsg is the length of struct ndmsg (rtnetlink(7)).
const sizeofNdMsg = 12

// InterfaceOf is the index in ifinfomsg, ifaddrmsg and ndmsg: it is in the same place. The
// message has at least that of struct ifaddrmsg.
func InterfaceOf(data []byte) int { return int(int32(binary.NativeEndian.Uint32(data[4:]))) }

// Attribute is the value of the first attribute of a kind, nil if there is none
// (struct rtattr, rtnetlink(7)).
func Attribute(attributes []byte, kind uint16) []byte {
	for len(attributes) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(attributes))
		if length < unix.SizeofRtAttr || length > len(attributes) {
			return nil
		}
		if binary.NativeEndian.Uint16(attributes[2:]) == kind {
			return attributes[unix.SizeofRtAttr:length]
		}
		attributes = attributes[min(alignedTo4(length), len(attributes)):]
	}
	return nil
}

func alignedTo4(length int) int { return (length + 3) &^ 3 }
