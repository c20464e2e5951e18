// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Path holds the values of the headers before the BTH, for one destination.
type Path struct {
	SourceMAC, DestMAC MAC
	VLAN               uint16 // 0: untagged
	Priority           uint8  // priority in the VLAN tag, 3 bits
	Source, Dest       GID    // both IPv4 or both IPv6
	TrafficClass       uint8
	HopLimit           uint8  // 0: DefaultHopLimit
	FlowLabel          uint32 // 20 bits; 0: the UDP source port is derived from the queue pairs
	SourcePorts        SourcePorts
	Unsealed           bool // packets have no ICRC, because the network is in memory (Packet.Unsealed)
}

// SourcePorts holds the UDP source ports that packets may have. The zero value permits any port.
type SourcePorts [4]uint16

// DefaultHopLimit is the hop limit of packets if Path.HopLimit is 0.
const DefaultHopLimit = 64

const flowLabelMask = 0xFFFFF

// Template holds the Ethernet, IP and UDP headers of all packets to one destination. In it, the fields that the ICRC
// does not cover are set to ones.
type Template struct {
	headers   [EthernetLen + VLANLen + IPv6Len + UDPLen]byte
	ip, bth   int
	v6        bool
	partial   uint64 // IPv4: one's complement sum of the constant words
	first     uint64 // IPv6: the first eight bytes without masking, with length 0
	tos, ttl  uint8  // the actual values of masked fields; IPv6: only tos, which is also in first
	flowLabel uint32
	ports     SourcePorts
	unsealed  bool
}

// NewTemplate returns the template for the packets on a path.
func NewTemplate(path Path) Template {
	t := Template{flowLabel: path.FlowLabel & flowLabelMask, v6: !path.Dest.IsIPv4(), ports: path.SourcePorts, unsealed: path.Unsealed}
	hops := path.HopLimit
	if hops == 0 {
		hops = DefaultHopLimit
	}
	t.putEthernet(path)
	ip := t.headers[t.ip:]
	if t.v6 {
		t.bth = t.ip + IPv6Len + UDPLen
		t.putIPv6(ip, path, hops)
	} else {
		t.bth = t.ip + IPv4Len + UDPLen
		t.putIPv4(ip, path, hops)
	}
	udp := t.headers[t.bth-UDPLen:]
	binary.BigEndian.PutUint16(udp[udpDestination:], UDPPort)
	udp[udpChecksum], udp[udpChecksum+1] = 0xFF, 0xFF
	return t
}

func (t *Template) putEthernet(path Path) {
	copy(t.headers[ethDestination:], path.DestMAC[:])
	copy(t.headers[ethSource:], path.SourceMAC[:])
	next := ethType
	if path.VLAN != 0 {
		binary.BigEndian.PutUint16(t.headers[next:], EtherTypeVLAN)
		binary.BigEndian.PutUint16(t.headers[next+2:], uint16(path.Priority)<<13|path.VLAN&vlanIDMask)
		next += VLANLen
	}
	kind := uint16(EtherTypeIPv4)
	if t.v6 {
		kind = EtherTypeIPv6
	}
	binary.BigEndian.PutUint16(t.headers[next:], kind)
	t.ip = next + 2
}

func (t *Template) putIPv4(ip []byte, path Path, hops uint8) {
	ip[ipv4VersionLength] = ipv4NoOptions
	ip[ipv4TOS], ip[ipv4TTL] = path.TrafficClass, hops
	binary.BigEndian.PutUint16(ip[ipv4Fragment:], ipv4DontFragment)
	ip[ipv4Protocol] = protocolUDP
	copy(ip[ipv4Source:], path.Source[12:])
	copy(ip[ipv4Destination:], path.Dest[12:])
	t.partial = uint64(onesComplementSum(ip[:IPv4Len]))
	t.tos, t.ttl = path.TrafficClass, hops
	maskIPv4(ip)
}

func (t *Template) putIPv6(ip []byte, path Path, hops uint8) {
	t.tos = path.TrafficClass
	t.first = 6<<60 | uint64(path.TrafficClass)<<52 | uint64(t.flowLabel)<<32 | protocolUDP<<8 | uint64(hops)
	binary.BigEndian.PutUint64(ip, t.first|ipv6Masked)
	copy(ip[ipv6Source:], path.Source[:])
	copy(ip[ipv6Destination:], path.Dest[:])
}
