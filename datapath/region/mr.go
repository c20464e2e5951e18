// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/verbs/ib"
)

// PD is the number of a protection domain. A request may use only objects of its queue pair's PD.
type PD uint32

// MR is the engine's part of a memory region. Base is the address of the start of Memory: the engine subtracts it from
// the address in an SGE or packet, and never dereferences such an address.
type MR struct {
	LKey   ib.LKey
	PD     PD
	Base   uint64 // chosen by the program; 0 makes addresses offsets
	Memory []byte
	Null   bool           // no memory and any address: reads return zeros, writes are discarded
	Write  bool           // local write access: receive requests may write here
	Remote ib.AccessFlags // operations permitted to peers: remote read, write, atomic; also binding of windows

	windows int   // number of windows bound to it
	fasts   int   // number of pieces of fast regions in its memory
	fast    *fast // state of a fast region; nil: it is not one
}

// Windows returns the number of memory windows bound to the region.
func (m *MR) Windows() int { return m.windows }

// Pieces returns the number of pieces of registered fast regions in the region's memory.
func (m *MR) Pieces() int { return m.fasts }

// part returns the first contiguous piece of length bytes of the region from offset on; ok is false if they are not all
// in the region. The piece is nil if the region has signatures.
func (m *MR) part(offset, length uint64) (memory []byte, ok bool) {
	if memory, ok = portion(m.Memory, offset, length); ok || m.fast == nil || !m.fast.holds(offset, length) {
		return memory, ok
	}
	if m.fast.signed() {
		return nil, true
	}
	return m.fast.piece(offset, length), true
}

// portion returns length bytes of memory from offset on; ok is false if they are not all in memory. The offset of an
// address below the base has wrapped around to a large number, which is out of range.
func portion(memory []byte, offset, length uint64) (_ []byte, ok bool) {
	size := uint64(len(memory))
	if offset > size || length > size-offset {
		return nil, false
	}
	return memory[offset : offset+length : offset+length], true
}
