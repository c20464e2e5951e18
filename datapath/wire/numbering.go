// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"hash/crc32"
	mathbits "math/bits"
)

// Numbering computes the effect of the IPv4 identification and the Don't Fragment flag on the ICRC. Links over UDP
// sockets need it, because the kernel writes both fields when a socket sends, and does not report them when a socket
// receives.
//
// A CRC is linear: if two packets of equal length differ in some bits, their ICRCs differ by the exclusive or of the
// effects of these bits, independently of the rest of the packets. An ICRC can therefore be corrected for another
// identification (Effect), and an identification can be computed from the ICRC (Solve). The check in Solve is weaker:
// of the 32 bits of an ICRC, 17 are used for the two fields, and 15 remain.
//
// The effects depend on the number of bytes that follow. They are computed when a length first occurs, and kept, in a
// third of a kilobyte for each length. A Numbering must be used by one goroutine at a time. The zero Numbering is ready
// to use.
type Numbering struct {
	lengths [(UDPLen + BTHLen + AtomicETHLen + 4096 + ICRCLen) / 4]*effects
}

// idBits is the number of bits of the identification, plus one for Don't Fragment, which is bit 16.
const idBits = 17

// effects holds the effects of the bits on the ICRC of a packet of some length.
type effects struct {
	of [idBits]uint32
	// rows holds exclusive ors of effects, in echelon form: the index of a row is the number of its highest bit.
	rows [32]struct {
		effect uint32
		bits   uint32 // the bits whose effect it is; 0: there is no row
	}
}

// Effect returns the change (by exclusive or) of the ICRC of an IPv4 packet if the bits changed of its identification
// are inverted. transport is the number of bytes from the BTH to the end of the ICRC. It returns 0 if no packet has
// this length.
func (n *Numbering) Effect(transport int, changed uint16) (sum uint32) {
	e := n.effectsFor(transport)
	if e == nil {
		return 0
	}
	for left := changed; left != 0; left &= left - 1 {
		sum ^= e.of[mathbits.TrailingZeros16(left)]
	}
	return sum
}

// Solve handles a packet whose ICRC is wrong according to CheckICRC. It reports whether another identification makes
// the ICRC correct, with or without Don't Fragment, and if so writes both into the packet.
func (n *Numbering) Solve(p *Packet) bool {
	e := n.effectsFor(len(p.frame) - p.bth)
	if p.v6 || e == nil {
		return false
	}
	difference, solution := p.sum^p.ICRC(), uint32(0)
	for difference != 0 {
		row := &e.rows[mathbits.Len32(difference)-1]
		if row.bits == 0 {
			return false
		}
		difference ^= row.effect
		solution ^= row.bits
	}
	p.changeID(uint16(solution), solution>>16 != 0)
	return true
}

// changeID inverts bits of the identification and, if dontFragment is set, Don't Fragment.
func (p *Packet) changeID(id uint16, dontFragment bool) {
	h := p.frame[p.ip : p.ip+IPv4Len]
	binary.BigEndian.PutUint16(h[ipv4Identification:], binary.BigEndian.Uint16(h[ipv4Identification:])^id)
	if dontFragment {
		h[ipv4Fragment] ^= ipv4DontFragment >> 8
	}
	h[ipv4Checksum], h[ipv4Checksum+1] = 0, 0
	binary.BigEndian.PutUint16(h[ipv4Checksum:], ^onesComplementSum(h))
}

// effectsFor returns the effects for a length; nil if no packet has this length.
func (n *Numbering) effectsFor(transport int) *effects {
	if transport < 0 || transport&3 != 0 || transport/4 >= len(n.lengths) {
		return nil
	}
	if n.lengths[transport/4] == nil {
		n.lengths[transport/4] = newEffects(transport)
	}
	return n.lengths[transport/4]
}

func newEffects(transport int) *effects {
	e := new(effects)
	after := make([]byte, IPv4Len-ipv4TTL+UDPLen+max(0, transport-ICRCLen))
	for i := range e.of {
		field := [4]byte{}
		if i < 16 {
			binary.BigEndian.PutUint16(field[:], 1<<i)
		} else {
			binary.BigEndian.PutUint16(field[2:], ipv4DontFragment)
		}
		e.of[i] = remainder(remainder(0, field[:]), after)
		e.addRow(e.of[i], 1<<i)
	}
	return e
}

// remainder returns the CRC without the inversions at its begin and end, which are not linear.
func remainder(sum uint32, b []byte) uint32 { return ^crc32.Update(^sum, crc32.IEEETable, b) }

// addRow adds an effect to the rows, reduced by the existing rows.
func (e *effects) addRow(effect, of uint32) {
	for effect != 0 {
		row := &e.rows[mathbits.Len32(effect)-1]
		if row.bits == 0 {
			row.effect, row.bits = effect, of
			return
		}
		effect, of = effect^row.effect, of^row.bits
	}
}
