package wire

// Meaning is what an operation does, and its place in a message: bits.
type Meaning uint16

// What operations do. An operation has one of the first eight bits. A message has one packet that starts it and one
// that ends it, which may be the same; what the end has besides (immediate data, a key to invalidate) only it has.
const (
	MeansSend Meaning = 1 << iota
	MeansWrite
	MeansRead // asks for one
	MeansCompareSwap
	MeansFetchAdd
	MeansReadResponse
	MeansAcknowledge
	MeansAtomicAcknowledge
	MeansStart
	MeansEnd
	MeansImmediate
	MeansInvalidate

	MeansAtomic = MeansCompareSwap | MeansFetchAdd
	// MeansAnswered are requests that are answered with data, which is their acknowledgement too (IBA 9.7.5.1.2).
	MeansAnswered = MeansRead | MeansAtomic
	// MeansAnswer is what a responder sends.
	MeansAnswer = MeansReadResponse | MeansAcknowledge | MeansAtomicAcknowledge
	// MeansReceive are the operations that take a receive, or complete one. A WRITE does at its end.
	MeansReceive = MeansSend | MeansImmediate

	alone = MeansStart | MeansEnd
	kinds = MeansAnswered | MeansAnswer | MeansSend | MeansWrite
)

// Is reports whether it has any of the bits.
func (m Meaning) Is(any Meaning) bool { return m&any != 0 }

// Kind is what it does, without the place in the message.
func (m Meaning) Kind() Meaning { return m & kinds }

// Means is what the opcode means, the same for all services; 0 if it does not exist.
func (o Opcode) Means() Meaning { return operations[o.Operation()].means }

// Sequence is the operations of a message's packets.
type Sequence struct{ first, middle, last, only Opcode }

// SequenceOf is the sequence of a message that does this, with the bits that only its end has. One that is a single
// packet, of whatever length, is that in all places.
func SequenceOf(m Meaning) Sequence {
	kind := m.Kind()
	only, _ := operationThat(m | alone)
	first, several := operationThat(kind | MeansStart)
	if !several {
		return Sequence{only, only, only, only}
	}
	middle, _ := operationThat(kind)
	last, _ := operationThat(m | MeansEnd)
	return Sequence{first, middle, last, only}
}

// operationThat finds the operation with exactly that meaning.
func operationThat(m Meaning) (operation Opcode, found bool) {
	for i, row := range operations {
		if row.means == m {
			return Opcode(i), true
		}
	}
	return 0, false
}

// At is the operation of a packet at a place, from 0, that stands for so many of all packets.
func (s *Sequence) At(place, many, packets uint32) Opcode {
	first, last := place == 0, place+many == packets
	switch {
	case first && last:
		return s.only
	case first:
		return s.first
	case last:
		return s.last
	}
	return s.middle
}
