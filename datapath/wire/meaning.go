// SPDX-License-Identifier: Apache-2.0

package wire

// Meaning describes an operation and its place in a message, as bits.
type Meaning uint16

// An operation has one of the first eight bits. A message has a first packet (MeansStart) and a last packet (MeansEnd),
// which may be the same. Only the last packet may have immediate data or a key to invalidate.
const (
	MeansSend Meaning = 1 << iota
	MeansWrite
	MeansRead // a request
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
	// MeansAnswered is the set of requests whose response contains data. The response is also the acknowledgement (IBA
	// 9.7.5.1.2).
	MeansAnswered = MeansRead | MeansAtomic
	// MeansAnswer is the set of packets that a responder sends.
	MeansAnswer = MeansReadResponse | MeansAcknowledge | MeansAtomicAcknowledge
	// MeansReceive is the set of packets that use a receive request: all packets of a SEND, and the last packet of a
	// WRITE with immediate data.
	MeansReceive = MeansSend | MeansImmediate

	alone = MeansStart | MeansEnd
	kinds = MeansAnswered | MeansAnswer | MeansSend | MeansWrite
)

// Is reports whether m has any of the bits.
func (m Meaning) Is(any Meaning) bool { return m&any != 0 }

// Kind returns the operation without the place in the message.
func (m Meaning) Kind() Meaning { return m & kinds }

// Means returns the meaning of the opcode, which is the same for all services; 0 if the opcode does not exist.
func (o Opcode) Means() Meaning { return operations[o.Operation()].means }

// Sequence holds the operations of a message's packets.
type Sequence struct{ first, middle, last, only Opcode }

// SequenceOf returns the sequence of a message. m is its kind, with MeansImmediate or MeansInvalidate if its last
// packet has these headers. A message that is always a single packet has the same operation in all places.
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

// operationThat returns the operation with exactly the meaning m.
func operationThat(m Meaning) (operation Opcode, found bool) {
	for i, row := range operations {
		if row.means == m {
			return Opcode(i), true
		}
	}
	return 0, false
}

// At returns the operation of the packet at a place, counted from 0, in a message of packets packets. The packet stands
// for many of them.
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
