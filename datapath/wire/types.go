// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net/netip"
)

// QPN is a queue pair number, 24 bits.
type QPN uint32

// Reserved queue pair numbers (IBA 9.2.7).
const (
	QPNSMI       QPN = 0        // subnet management; not used by RoCE
	QPNGSI       QPN = 1        // general services: connection management
	QPNMulticast QPN = 0xFFFFFF // destination of packets to a multicast group
	QPNMax       QPN = 0xFFFFFF
)

// String formats the number like the InfiniBand tools.
func (q QPN) String() string { return fmt.Sprintf("0x%06x", uint32(q)) }

// PSN is a packet sequence number, 24 bits.
type PSN uint32

// PSNMask masks the 24 bits of a PSN.
const PSNMask PSN = 0xFFFFFF

// Plus returns the PSN n packets after p.
func (p PSN) Plus(n uint32) PSN { return (p + PSN(n)) & PSNMask }

// Ahead returns the distance from the PSN of to p, modulo 2²⁴: from -2²³ to 2²³-1, and negative if p precedes of (IBA
// 9.7.1).
func (p PSN) Ahead(of PSN) int { return int(int32((p-of)<<8) >> 8) }

// QKey is the key of a datagram queue pair: packets with another Q_Key are dropped.
type QKey uint32

// QKeyGSI is the Q_Key of QP 1 (IBA 13.5.3.1). QKeyPrivileged is the bit of Q_Keys that only a privileged program may
// set on a queue pair (IBA 10.2.5). A send request whose Q_Key has this bit is sent with the queue pair's own Q_Key.
const (
	QKeyGSI        QKey = 0x80010000
	QKeyPrivileged QKey = 0x80000000
)

// String prints the key in hexadecimal.
func (q QKey) String() string { return fmt.Sprintf("0x%08x", uint32(q)) }

// PKey is a partition key: 15 bits of partition and the membership bit.
type PKey uint16

// PKeyDefault is the P_Key for full membership in the default partition, the only partition that roced supports.
const PKeyDefault PKey = 0xFFFF

const (
	pkeyFull      PKey = 0x8000
	pkeyPartition PKey = 0x7FFF
)

// Matches reports whether a queue pair with key p accepts packets with key q: the partitions are equal and valid, and
// at least one key is a full membership (IBA 10.9.3).
func (p PKey) Matches(q PKey) bool {
	return (p^q)&pkeyPartition == 0 && p&pkeyPartition != 0 && (p|q)&pkeyFull != 0
}

// String prints the key in hexadecimal.
func (p PKey) String() string { return fmt.Sprintf("0x%04x", uint16(p)) }

// MLID is a multicast local identifier. It has no meaning on Ethernet, but is an argument of verbs calls; a group keeps
// the MLID of its first attachment.
type MLID uint16

// MAC is an Ethernet address.
type MAC [6]byte

// String prints the address with colons.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// IsGroup reports whether the address is a multicast or broadcast address.
func (m MAC) IsGroup() bool { return m[0]&1 != 0 }

// MulticastMAC returns the Ethernet address of a group: 01:00:5e and the low 23 bits of an IPv4 group (RFC 1112), or
// 33:33 and the low 32 bits of an IPv6 group (RFC 2464). Several groups can have the same Ethernet address.
func MulticastMAC(group GID) MAC {
	if group.IsIPv4() {
		return MAC{0x01, 0x00, 0x5e, group[13] & 0x7f, group[14], group[15]}
	}
	return MAC{0x33, 0x33, group[12], group[13], group[14], group[15]}
}

// GID is a global identifier. In RoCEv2 it is an IP address; an IPv4 address is mapped to ::ffff:a.b.c.d (IBA A17.4.4).
type GID [16]byte

// GIDFromAddr returns the GID of an IP address, without its zone.
func GIDFromAddr(addr netip.Addr) GID { return addr.As16() }

// Addr returns the IP address. An IPv4-mapped address is returned as an IPv4 address.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// IsIPv4 reports whether the GID represents an IPv4 address.
func (g GID) IsIPv4() bool {
	return g[0]|g[1]|g[2]|g[3]|g[4]|g[5]|g[6]|g[7]|g[8]|g[9] == 0 && g[10] == 0xff && g[11] == 0xff
}

// IsMulticast reports whether the GID is a multicast group: 224.0.0.0/4 or ff00::/8.
func (g GID) IsMulticast() bool {
	return g[0] == 0xff || g.IsIPv4() && g[12]&0xf0 == 0xe0
}

// IsLinkLocal reports whether the GID is a link-local unicast address.
func (g GID) IsLinkLocal() bool { return g.Addr().IsLinkLocalUnicast() }

// IsMartian reports whether the address is not a valid source address in any subnet: 0.0.0.0, 127.0.0.0/8,
// 255.255.255.255, :: and ::1. Addresses in 240.0.0.0/4 are valid source addresses, as in Linux.
func (g GID) IsMartian() bool {
	a := g.Addr()
	return a.IsUnspecified() || a.IsLoopback() || a == ipv4Broadcast
}

var ipv4Broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// StaysInHost reports whether the GID is an IPv6 group of scope 0 (reserved) or 1 (interface-local). Packets to such
// groups never leave a host (RFC 4291, 2.7).
func (g GID) StaysInHost() bool { return g[0] == 0xff && g[1]&0x0f <= 1 }

// IsZero reports whether the GID is unset.
func (g GID) IsZero() bool { return g == GID{} }

// String formats the GID as an IPv6 address; IPv4 addresses as ::ffff:a.b.c.d.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// MTU is the code of an RDMA MTU (IBA 9.7.1), from 1 for 256 bytes to 5 for 4096 bytes.
type MTU uint8

// The MTUs.
const (
	MTU256 MTU = iota + 1
	MTU512
	MTU1024
	MTU2048
	MTU4096
)

// Bytes returns the maximum payload of a packet, in bytes; 0 if the MTU is invalid.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// String prints the size in bytes.
func (m MTU) String() string { return fmt.Sprint(m.Bytes()) }

// MTUOverhead is the maximum length of the headers that count in the interface's MTU, in bytes: IPv6, UDP, BTH, the
// longest extended headers and ICRC, rounded up as in the kernel.
const MTUOverhead = 80

// MTUFor returns the largest RDMA MTU that fits into an interface's MTU, which is in bytes; 0 if that is too small.
func MTUFor(interfaceMTU int) MTU {
	for m := MTU4096; m >= MTU256; m-- {
		if m.Bytes() <= interfaceMTU-MTUOverhead {
			return m
		}
	}
	return 0
}
