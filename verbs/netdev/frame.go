// SPDX-License-Identifier: Apache-2.0

package netdev

import "encoding/binary"

// The header of each piece of a packet. In a packet of one piece, zeros follow the EtherType, as in RFC 4391.
//
//	0        2                  3
//	+--------+------------------+-----------+
//	|  type  | more 1 | piece 7 | packet 8 |
//	+--------+------------------+-----------+
const (
	headerLen = 4

	typeIPv4 = 0x0800
	typeARP  = 0x0806
	typeIPv6 = 0x86dd

	// moreFollow marks all pieces except the last. The bits below are the index of the piece.
	moreFollow = 0x80

	maxPieces     = 16
	longestPacket = maxPieces * (4096 - headerLen) // bytes
)

// header is the 4 bytes in front of a piece.
type header struct {
	protocol uint16
	piece    uint8 // counted from 0
	more     bool
	packet   uint8 // the same for all pieces of a packet
}

func (h header) put(p []byte) {
	binary.BigEndian.PutUint16(p, h.protocol)
	p[2], p[3] = h.piece, h.packet
	if h.more {
		p[2] |= moreFollow
	}
}

// parseHeader splits off the header; false if it is incomplete.
func parseHeader(p []byte) (h header, payload []byte, ok bool) {
	if len(p) <= headerLen {
		return h, nil, false
	}
	h = header{
		protocol: binary.BigEndian.Uint16(p),
		piece:    p[2] &^ moreFollow, more: p[2]&moreFollow != 0, packet: p[3],
	}
	return h, p[headerLen:], true
}

// whole reports whether the packet has one piece.
func (h header) whole() bool { return h.piece == 0 && !h.more }
