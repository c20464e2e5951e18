// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// Socket receives the packets for an address of the host, or for a group.
type Socket struct {
	fd      int
	address netip.Addr
	before  uint64 // number of packets dropped before it was added to the link, for example while it was muted
}

// lost returns the number of packets that it has dropped since it was added to the link.
func (s *Socket) lost() uint64 { return s.drops() - s.before }

// buffer is the requested size of a socket buffer, in bytes. Without CAP_NET_ADMIN it is limited by the sysctls
// net.core.rmem_max and net.core.wmem_max.
const buffer = 8 << 20

// OpenSocket opens the socket of an address of the host, in the network namespace of the calling thread. index is the
// interface of a link-scope address. The error is EADDRINUSE if another program uses the port.
func OpenSocket(address netip.Addr, index int) (*Socket, error) {
	s, err := newSocket(address)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(s.fd, endpoint(address, wire.UDPPort, index)); err != nil {
		return nil, errors.Join(fmt.Errorf("bind UDP port %d of %v: %w", wire.UDPPort, address, err), s.Close())
	}
	return s, nil
}

// OpenGroup opens the socket of a multicast group. After Join it receives packets for the group that arrive on the
// interface. Sockets of other programs for the same group do not interfere.
func OpenGroup(group netip.Addr, index int) (*Socket, error) {
	s, err := newSocket(group)
	if err != nil {
		return nil, err
	}
	if err = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil && group.Is6() {
		// For IPv6 groups the kernel does not check which interface has joined.
		err = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, index)
	}
	if err == nil {
		err = unix.Bind(s.fd, endpoint(group, wire.UDPPort, index))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bind UDP port %d of group %v: %w", wire.UDPPort, group, err), s.Close())
	}
	return s, nil
}

// Join makes the host join the socket's group on an interface: the kernel sends the IGMP or MLD report. Closing the
// socket leaves the group.
func (s *Socket) Join(index int) (err error) {
	if s.address.Is4() {
		err = unix.SetsockoptIPMreqn(s.fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: s.address.As4(), Ifindex: int32(index)})
	} else {
		err = unix.SetsockoptIPv6Mreq(s.fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: s.address.As16(), Interface: uint32(index)})
	}
	if err != nil {
		return fmt.Errorf("join %v: %w", s.address, err)
	}
	return nil
}

// Leave ends Join.
func (s *Socket) Leave(index int) (err error) {
	if s.address.Is4() {
		err = unix.SetsockoptIPMreqn(s.fd, unix.IPPROTO_IP, unix.IP_DROP_MEMBERSHIP, &unix.IPMreqn{Multiaddr: s.address.As4(), Ifindex: int32(index)})
	} else {
		err = unix.SetsockoptIPv6Mreq(s.fd, unix.IPPROTO_IPV6, unix.IPV6_LEAVE_GROUP, &unix.IPv6Mreq{Multiaddr: s.address.As16(), Interface: uint32(index)})
	}
	if err != nil && err != unix.EADDRNOTAVAIL { // EADDRNOTAVAIL: the membership has ended with the interface
		return fmt.Errorf("leave %v: %w", s.address, err)
	}
	return nil
}

// Close closes the socket, which must not be part of a link.
func (s *Socket) Close() error { return unix.Close(s.fd) }

// option is a socket option with an integer value.
type option struct{ level, name, value int }

// receiveOptions are the options of receiving sockets. They make the kernel report IP header fields, and deliver
// packets to a group only to sockets that have joined it, not to all sockets of the host.
var receiveOptions = map[int][]option{
	unix.AF_INET: {
		{unix.IPPROTO_IP, unix.IP_PKTINFO, 1}, {unix.IPPROTO_IP, unix.IP_RECVTOS, 1}, {unix.IPPROTO_IP, unix.IP_RECVTTL, 1},
		{unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0},
	},
	unix.AF_INET6: {
		{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0},
		{unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1}, // RDMA NICs send no UDP checksum
	},
}

// newSocket returns a receiving socket that is not bound yet.
func newSocket(address netip.Addr) (*Socket, error) {
	family := familyOf(address)
	fd, err := newUDP(family, receiveOptions[family])
	if err != nil {
		return nil, err
	}
	enlarge(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
	// Kernels without UDP_GRO (before 5.0) deliver packets separately.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	return &Socket{fd: fd, address: address}, nil
}

func familyOf(address netip.Addr) int {
	if address.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func newUDP(family int, options []option) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("UDP socket: %w", err)
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return -1, errors.Join(fmt.Errorf("UDP socket: option %d of level %d: %w", o.name, o.level, err), unix.Close(fd))
		}
	}
	return fd, nil
}

// enlarge requests a large buffer, with the privileged option if permitted.
func enlarge(fd, privileged, ordinary int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, privileged, buffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, ordinary, buffer)
	}
}

// endpoint returns an address and a port for a system call. index is the interface of a link-scope address.
func endpoint(address netip.Addr, port int, index int) unix.Sockaddr {
	if address.Is4() {
		return &unix.SockaddrInet4{Addr: address.As4(), Port: port}
	}
	to := &unix.SockaddrInet6{Addr: address.As16(), Port: port}
	if address.IsLinkLocalUnicast() || address.IsLinkLocalMulticast() || address.IsInterfaceLocalMulticast() {
		to.ZoneId = uint32(index)
	}
	return to
}

// mute makes a socket drop all packets that arrive. It is used for sending sockets, and for groups without members.
func mute(fd int) error { return filter(fd, []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}) }

func filter(fd int, program []unix.SockFilter) error {
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	if err != nil {
		return fmt.Errorf("filter of a UDP socket: %w", err)
	}
	return nil
}

// Mute makes the socket drop all packets, including those that have arrived.
func (s *Socket) Mute() error {
	err := mute(s.fd)
	for range buffer { // more packets than any socket holds; no further packets arrive
		if _, _, again := unix.Recvfrom(s.fd, nil, unix.MSG_DONTWAIT|unix.MSG_TRUNC); again == unix.EAGAIN {
			break
		}
	}
	return err
}

// Hear ends Mute.
func (s *Socket) Hear() error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil && err != unix.ENOENT {
		return fmt.Errorf("filter of a UDP socket: %w", err)
	}
	return nil
}
