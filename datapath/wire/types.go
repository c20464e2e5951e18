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
	QPNSMI       QPN = 0        // subnet management; never valid on RoCE
	QPNGSI       QPN = 1        // general services: connection management
	QPNMulticast QPN = 0xFFFFFF // the packet is for a group, not for a queue pair
	QPNMax       QPN = 0xFFFFFF
)

// String prints the number as the InfiniBand tools do.
func (q QPN) String() string { return fmt.Sprintf("0x%06x", uint32(q)) }

// PSN is a packet sequence number, 24 bits.
type PSN uint32

// PSNMask masks the 24 bits of a PSN.
const PSNMask PSN = 0xFFFFFF

// Plus returns the PSN n packets after p.
func (p PSN) Plus(n uint32) PSN { return (p + PSN(n)) & PSNMask }

// Ahead returns how far p is ahead of another PSN: negative if it is behind. Half of the 2²⁴ numbers are ahead, half
// are behind (IBA 9.7.1).
func (p PSN) Ahead(of PSN) int { return int(int32((p-of)<<8) >> 8) }

// QKey is the key of a datagram queue pair: packets with another Q_Key are dropped.
type QKey uint32

// QKeyGSI is the Q_Key of QP 1 (IBA 13.5.3.1). QKeyPrivileged is the bit of the keys that only a privileged program may
// set on a queue pair (IBA 10.2.5). A send request with this bit in its key uses the queue pair's own Q_Key.
const (
	QKeyGSI        QKey = 0x80010000
	QKeyPrivileged QKey = 0x80000000
)

// String prints the key in hexadecimal.
func (q QKey) String() string { return fmt.Sprintf("0x%08x", uint32(q)) }

// PKey is a partition key: 15 bits of partition and the membership bit.
type PKey uint16

// PKeyDefault is full membership in the default partition, the only partition here.
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

// MLID is a multicast local identifier. Ethernet has none, but the verbs calls have the argument; a group keeps the
// MLID of its first attachment.
type MLID uint16

// MAC is an Ethernet address.
type MAC [6]byte

// String prints the address with colons.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// IsGroup reports whether the address is a multicast or broadcast address.
func (m MAC) IsGroup() bool { return m[0]&1 != 0 }

// MulticastMAC computes the Ethernet address of a group: 01:00:5e and the low 23 bits of an IPv4
// group (RFC 1112), or 33:33 and the low 32 bits of an IPv6 group (RFC 2464). Several groups share
// one Ethernet address.
func MulticastMAC(group GID) MAC {
	if group.IsIPv4() {
		return MAC{0x01, 0x00, 0x5e, group[13] & 0x7f, group[14], group[15]}
	}
	return MAC{0x33, 0x33, group[12], group[13], group[14], group[15]}
}

// GID is a global identifier. In RoCEv2 it is an IP address; IPv4 addresses are
// written ::ffff:a.b.c.d (IBA A17.4.4).
type GID [16]byte

// GIDFromAddr returns the GID of an IP address, without its zone.
func GIDFromAddr(addr netip.Addr) GID { return addr.As16() }

// Addr returns the IP address; IPv4-mapped addresses as IPv4.
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

// IsMartian reports whether the address cannot be a source in any subnet: 0.0.0.0, 127.0.0.0/8,
// 255.255.255.255, :: and ::1. Addresses in 240.0.0.0/4 are valid sources, as in Linux.
func (g GID) IsMartian() bool {
	a := g.Addr()
	return a.IsUnspecified() || a.IsLoopback() || a == ipv4Broadcast
}

var ipv4Broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// StaysInHost reports whether the GID is an IPv6 group of scope 0 (reserved) or 1
// (interface-local). Packets to these never leave a host (RFC 4291, 2.7).
func (g GID) StaysInHost() bool { return g[0] == 0xff && g[1]&0x0f <= 1 }

// IsZero reports whether the GID is unset.
func (g GID) IsZero() bool { return g == GID{} }

// String prints the GID as an IPv6 address; IPv4 as ::ffff:a.b.c.d.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// MTU is an RDMA MTU as enumerated in IBA 9.7.1: 1 is 256 bytes, 5 is 4096.
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

// MTUOverhead is the maximum length of headers within the interface's MTU, in bytes: IPv6, UDP, BTH, the longest
// extended headers and ICRC, rounded up as in the kernel.
const MTUOverhead = 80

// MTUFor returns the largest RDMA MTU that fits an interface's MTU in bytes; 0 if none does.
func MTUFor(interfaceMTU int) MTU {
	for m := MTU4096; m >= MTU256; m-- {
		if m.Bytes() <= interfaceMTU-MTUOverhead {
			return m
		}
	}
	return 0
}
