// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
)

// pattern is the payload of a test message: each byte depends on the direction, the message's
// number and the byte's offset, so that no part of a message equals another.
type pattern uint32

func newPattern(direction int, number uint32) pattern {
	return pattern((number<<1 | uint32(direction)) * 0x9E3779B1) // an odd factor keeps all bits
}

func (p pattern) at(offset int) byte {
	return byte(p>>(offset%4*8)) + byte(offset) + byte(offset>>8)
}

func (p pattern) fill(payload []byte) {
	for i := range payload {
		payload[i] = p.at(i)
	}
}

// check returns an error for the first wrong byte.
func (p pattern) check(payload []byte) error {
	for i, b := range payload {
		if b != p.at(i) {
			return fmt.Errorf("byte %d of %d: got 0x%02x, want 0x%02x", i, len(payload), b, p.at(i))
		}
	}
	return nil
}
