// SPDX-License-Identifier: Apache-2.0

//go:build cards

package xsk

// poison overwrites memory before it is returned to the kernel, and memory of sent frames. Neither the engine nor, in
// zero-copy mode, the NIC may read a packet there afterwards. If one does, the packet has no valid ICRC.
func (s *Socket) poison(start, length uint64) {
	memory := s.umem[start : start+length]
	for i := range memory {
		memory[i] = 0xa5
	}
}
