package wire

import (
	"encoding/binary"
	"hash/crc32"
	mathbits "math/bits"
)

// Numbering knows what IPv4's identification and Don't Fragment do to the ICRC, for those who see only what
// UDP carries: the kernel writes both fields when a socket sends, and does not show them to the one that receives.
//
// A CRC is linear. Two packets of one length that differ in some bits have ICRCs that differ by the exclusive or of
// what each of these bits does alone, whatever else is in the packets. So an ICRC can be corrected for another
// identification (Effect), and an identification can be found from the ICRC (Solve). What Solve accepts is weaker: of
// the 32 bits that an ICRC checks, the 17 bits of the two fields are spent, and 15 remain.
//
// The effects depend on how many bytes follow. They are computed when a length is first seen, and kept: a
// third of a kilobyte for each length. A Numbering belongs to one goroutine at a time. Its zero value is ready.
type Numbering struct {
	lengths [(UDPLen + BTHLen + AtomicETHLen + 4096 + ICRCLen) / 4]*effects
}

// idBits are the bits of the identification, and Don't Fragment as bit 16.
const idBits = 17

// effects are what the bits do to the ICRC of a packet of some length.
type effects struct {
	of [idBits]uint32
	// rows are exclusive ors of effects. Each has a highest bit that no other row has, by which it is found.
	rows [32]struct {
		effect uint32
		bits   uint32 // that it is the effect of; 0: no row
	}
}

// Effect is what has to be added (by exclusive or) to the ICRC of an IPv4 packet with so many bytes from the BTH to the end
// of the ICRC, when bits of its identification change.
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

// Solve is for a packet whose ICRC is wrong, as CheckICRC has just found. It says whether another identification makes it
// right, with or without Don't Fragment, and if so writes these into the packet.
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

// changeID changes bits of the identification, and maybe Don't Fragment.
func (p *Packet) changeID(id uint16, dontFragment bool) {
	h := p.frame[p.ip : p.ip+IPv4Len]
	binary.BigEndian.PutUint16(h[ipv4Identification:], binary.BigEndian.Uint16(h[ipv4Identification:])^id)
	if dontFragment {
		h[ipv4Fragment] ^= ipv4DontFragment >> 8
	}
	h[ipv4Checksum], h[ipv4Checksum+1] = 0, 0
	binary.BigEndian.PutUint16(h[ipv4Checksum:], ^onesComplementSum(h))
}

// effectsFor gives the effects for a length; nil if no packet has it.
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

// remainder is the CRC without the inversions before and after, which are not linear.
func remainder(sum uint32, b []byte) uint32 { return ^crc32.Update(^sum, crc32.IEEETable, b) }

// addRow adds an effect to the rows, after taking out what they have already.
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
