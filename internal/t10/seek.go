package t10

// Seek goes to a place of the destination, in bytes from its beginning: where a packet is made again. The source is
// to be given from the place returned, and so many bytes be thrown away (Discard) before those that are wanted: a
// guard is only known with its whole block. A failed check is kept.
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

// unit is how many bytes of data there are between two places where both sides begin a block.
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

// blocks is how many blocks so much data is.
func (s *side) blocks(data uint64) uint64 { return data / uint64(s.interval) }

// fields is how long the fields are of so much data.
func (s *side) fields(data uint64) uint64 { return s.blocks(data) * uint64(s.fieldLen) }

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
