// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"encoding/binary"
	"net/netip"
)

// A query or a reply about an address, as in RFC 826, without hardware addresses: the location is the datagram's
// source, which the sender cannot choose freely.
//
//	0          2          4        5        6       8
//	+----------+----------+--------+--------+-------+-----------+-----------+
//	| hardware | protocol | 0      | 4 or 16| op    | sender IP | target IP |
//	+----------+----------+--------+--------+-------+-----------+-----------+
const (
	resolutionLen  = 8
	infiniBand     = 32 // hardware type of RFC 4391
	opAsk          = 1
	opAnswer       = 2
	longestMessage = headerLen + resolutionLen + 2*16
)

// resolution is such a message. An announcement is a query for the sender's own address.
type resolution struct {
	op             uint16
	sender, target netip.Addr
}

// message returns the encoded datagram.
func (r *resolution) message() []byte {
	protocol := uint16(typeIPv4)
	if r.target.Is6() {
		protocol = typeIPv6
	}
	p := make([]byte, headerLen+resolutionLen, longestMessage)
	header{protocol: typeARP}.put(p)
	q := p[headerLen:]
	binary.BigEndian.PutUint16(q, infiniBand)
	binary.BigEndian.PutUint16(q[2:], protocol)
	q[5] = byte(r.target.BitLen() / 8)
	binary.BigEndian.PutUint16(q[6:], r.op)
	return append(append(p, r.sender.AsSlice()...), r.target.AsSlice()...)
}

// parseResolution parses the data after the header of 4 bytes; false if it is invalid.
func parseResolution(p []byte) (r resolution, ok bool) {
	if len(p) < resolutionLen || binary.BigEndian.Uint16(p) != infiniBand || p[4] != 0 {
		return r, false
	}
	length := map[uint16]int{typeIPv4: 4, typeIPv6: 16}[binary.BigEndian.Uint16(p[2:])]
	if length == 0 || int(p[5]) != length || len(p) != resolutionLen+2*length {
		return r, false
	}
	r.op = binary.BigEndian.Uint16(p[6:])
	r.sender, _ = netip.AddrFromSlice(p[resolutionLen : resolutionLen+length])
	r.target, _ = netip.AddrFromSlice(p[resolutionLen+length:])
	return r, (r.op == opAsk || r.op == opAnswer) && isHost(r.sender) && isHost(r.target)
}

// isHost reports whether a host can have the address on this network.
func isHost(a netip.Addr) bool {
	return a.IsValid() && !a.IsMulticast() && !a.IsLoopback() && !a.IsUnspecified() && a != broadcast && !a.Is4In6()
}
