// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"bytes"
	"encoding/binary"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// headers holds the offsets of the headers of a frame that the engine has built, which has no VLAN tag.
type headers struct {
	frame []byte
	bth   int  // offset of the BTH
	six   bool // IPv6
}

func headersOf(frame []byte) headers {
	at := headers{frame: frame, bth: wire.EthernetLen + wire.IPv4Len + wire.UDPLen}
	if at.six = frame[wire.EthernetLen]>>4 == 6; at.six {
		at.bth = wire.EthernetLen + wire.IPv6Len + wire.UDPLen
	}
	return at
}

func (at *headers) ip() []byte         { return at.frame[wire.EthernetLen:at.bth] }
func (at *headers) sourcePort() uint16 { return binary.BigEndian.Uint16(at.frame[at.bth-wire.UDPLen:]) }

// sameFlow reports whether another frame has the same headers, except for lengths, checksums and identification.
func (at *headers) sameFlow(other []byte) bool {
	if len(other) < at.bth {
		return false
	}
	a, b := at.ip(), other[wire.EthernetLen:at.bth]
	if at.six {
		return [4]byte(a) == [4]byte(b) && bytes.Equal(a[6:wire.IPv6Len+4], b[6:wire.IPv6Len+4])
	}
	return [2]byte(a) == [2]byte(b) && a[8] == b[8] && bytes.Equal(a[12:wire.IPv4Len+4], b[12:wire.IPv4Len+4])
}

// putDestination writes the destination address of the frame to a socket address, and returns the length of that. For a
// link-scope address it includes the interface.
func (at *headers) putDestination(to *name, index uint32) int {
	ip := at.ip()
	clear(to[:])
	binary.BigEndian.PutUint16(to[2:], wire.UDPPort)
	if !at.six {
		binary.NativeEndian.PutUint16(to[:], unix.AF_INET)
		copy(to[4:], ip[16:20])
		return unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(to[:], unix.AF_INET6)
	copy(to[8:], ip[24:40])
	if onLink(ip[24:40]) {
		binary.NativeEndian.PutUint32(to[24:], index)
	}
	return unix.SizeofSockaddrInet6
}

// onLink reports whether an IPv6 address requires an interface: fe80::/10 and multicast addresses.
func onLink(address []byte) bool {
	return address[0] == 0xff || address[0] == 0xfe && address[1]&0xc0 == 0x80
}

// putControls writes the control messages of a train or packet: source address, interface, hop limit, traffic class,
// and, if segment is not 0, the length of a train's packets. It returns their total length. Packets to groups and
// link-scope addresses are sent on the interface with the given index; for others the kernel selects the route.
func (at *headers) putControls(control []byte, index uint32, segment int) int {
	ip, room := at.ip(), len(control)
	if at.six {
		data, rest := putControl(control, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
		copy(data, ip[8:24])
		if !onLink(ip[24:40]) && !onLink(ip[8:24]) {
			index = 0
		}
		binary.NativeEndian.PutUint32(data[16:], index)
		rest = putControlInt(rest, unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT, int(ip[7]))
		control = putControlInt(rest, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int(binary.BigEndian.Uint16(ip)>>4&0xff))
	} else {
		data, rest := putControl(control, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		if ip[16]>>4 != 0xe {
			index = 0
		}
		binary.NativeEndian.PutUint32(data, index)
		copy(data[4:8], ip[12:16])
		rest = putControlInt(rest, unix.IPPROTO_IP, unix.IP_TTL, int(ip[8]))
		control = putControlInt(rest, unix.IPPROTO_IP, unix.IP_TOS, int(ip[1]))
	}
	if segment > 0 {
		data, rest := putControl(control, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2)
		binary.NativeEndian.PutUint16(data, uint16(segment))
		control = rest
	}
	return room - len(control)
}
