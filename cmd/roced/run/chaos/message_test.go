// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// head is the header of a message: sender, receiver and number. A payload that is unique to the
// message follows.
type head struct {
	Program uint32    // sender
	PID     uint32    // of the sender's process
	From    verbs.QPN // the sender's queue pair
	Round   uint32    // 0 outside of rounds
	To      verbs.GID // destination: the GID of a queue pair, or a group
	ToQPN   verbs.QPN
	Number  uint64 // sequence number from this queue pair to this destination, from 1
}

var headLength = binary.Size(head{})

// encode returns a message of length bytes, at least headLength.
func (h *head) encode(length int) []byte {
	message := make([]byte, length)
	if _, err := binary.Encode(message, binary.LittleEndian, h); err != nil {
		panic(err) // too short: a bug in this test
	}
	h.fill(message[headLength:])
	return message
}

// fill writes bytes that are unique to this message (splitmix64).
func (h *head) fill(tail []byte) {
	state := h.Number<<20 ^ uint64(h.From)<<40 ^ uint64(h.Program)<<8 ^ uint64(h.PID)<<24 ^ uint64(len(tail))
	for i := 0; i < len(tail); i += 8 {
		state += 0x9e3779b97f4a7c15
		z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], z^z>>27)
		copy(tail[i:], word[:])
	}
}

// flow identifies the messages of one queue pair to one destination.
type flow struct {
	program, pid uint32
	from         verbs.QPN
	to           verbs.GID
	toQPN        verbs.QPN
}

// checker checks the messages that a queue pair receives.
type checker struct {
	own  verbs.QPN
	last map[flow]uint64 // number of the last message
}

// check returns an error for a message that is damaged, for another receiver, from an address other than its sender's,
// or out of order.
func (c *checker) check(m *ud.Message) (h head, err error) {
	if len(m.Data) < headLength {
		return h, fmt.Errorf("a message of %d bytes", len(m.Data))
	}
	if _, err := binary.Decode(m.Data, binary.LittleEndian, &h); err != nil {
		return h, err
	}
	want := make([]byte, len(m.Data)-headLength)
	h.fill(want)
	f := flow{h.Program, h.PID, h.From, h.To, h.ToQPN}
	switch {
	case !bytes.Equal(m.Data[headLength:], want):
		return h, fmt.Errorf("%+v has an invalid payload", h)
	case h.From != m.From.QPN:
		return h, fmt.Errorf("%+v arrived from %v", h, m.From)
	case h.ToQPN != c.own && h.ToQPN != verbs.MulticastQPN:
		return h, fmt.Errorf("%+v arrived at %v", h, c.own)
	case h.Number <= c.last[f]:
		return h, fmt.Errorf("%+v arrived after number %d", h, c.last[f])
	}
	c.last[f] = h.Number
	return h, nil
}
