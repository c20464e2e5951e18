// SPDX-License-Identifier: Apache-2.0

package t10

// Seek moves to an offset in the destination, in bytes, to generate a packet again. The caller must supply
// the source from the returned offset and discard (Discard) the returned number of bytes first, because a
// guard is only known for a complete block. A failed check is kept.
func (t *Transfer) Seek(to uint64) (source uint64, discard int) {
	unit := t.unit()
	from := unit + t.from.fields(unit)
	whole := unit + t.to.fields(unit)
	n := to / whole
	t.made = false
	t.from.begin(t.from.blocks(n * unit))
	t.to.begin(t.to.blocks(n * unit))
	return n * from, int(to - n*whole)
}

// unit returns the number of data bytes between two positions where both sides start a block.
func (t *Transfer) unit() uint64 {
	a, b := uint64(t.from.interval), uint64(t.to.interval)
	switch {
	case t.from.fieldLen == 0 && t.to.fieldLen == 0:
		return 1
	case t.from.fieldLen == 0:
		return b
	case t.to.fieldLen == 0:
		return a
	}
	return a / gcd(a, b) * b
}

// blocks returns the number of blocks for an amount of data.
func (s *side) blocks(data uint64) uint64 { return data / uint64(s.interval) }

// fields returns the length of the fields for an amount of data.
func (s *side) fields(data uint64) uint64 { return s.blocks(data) * uint64(s.fieldLen) }

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
