// SPDX-License-Identifier: Apache-2.0

package t10

import (
	"encoding/binary"
	"math/bits"
)

// ipSum adds data to an unfolded ones' complement sum of 16-bit words. odd means that the data starts at an
// odd offset.
func ipSum(sum uint64, p []byte, odd bool) uint64 {
	if odd && len(p) > 0 {
		sum = addCarry(sum, uint64(p[0]))
		p = p[1:]
	}
	var carry uint64
	for len(p) >= 32 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(p), 0)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(p[8:16]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(p[16:24]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(p[24:32]), carry)
		sum = addCarry(sum, carry)
		p = p[32:]
	}
	for len(p) >= 2 {
		sum = addCarry(sum, uint64(binary.BigEndian.Uint16(p)))
		p = p[2:]
	}
	if len(p) == 1 {
		sum = addCarry(sum, uint64(p[0])<<8)
	}
	return sum
}

func addCarry(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum + carry
}

// foldIPSum converts a sum to a checksum.
func foldIPSum(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// xorSum adds data to the XOR of 32-bit words. The data starts at the given offset.
func xorSum(sum uint32, p []byte, at int) uint32 {
	for ; at%4 != 0 && len(p) > 0; at++ {
		sum ^= uint32(p[0]) << (24 - 8*(at%4))
		p = p[1:]
	}
	var wide uint64
	for len(p) >= 8 {
		wide ^= binary.BigEndian.Uint64(p)
		p = p[8:]
	}
	sum ^= uint32(wide>>32) ^ uint32(wide)
	for i, c := range p {
		sum ^= uint32(c) << (24 - 8*(i%4))
	}
	return sum
}
