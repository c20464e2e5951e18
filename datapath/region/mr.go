// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/verbs/ib"
)

// PD is the number of a protection domain. A request may use only objects of its queue pair's PD.
type PD uint32

// MR is the engine's part of a memory region. SGEs contain addresses relative to Base, which is the start of Memory;
// the engine never dereferences an address from a program.
type MR struct {
	LKey   ib.LKey
	PD     PD
	Base   uint64 // chosen by the program; 0 makes addresses offsets
	Memory []byte
	Null   bool           // no memory and any address: reads return zeros, writes are discarded
	Write  bool           // local write access: receive requests may write here
	Remote ib.AccessFlags // permitted to peers: remote read, write, atomic; and binding of windows

	windows int   // number of windows bound to it
	fasts   int   // number of pieces of fast regions in its memory
	fast    *fast // if requests register the region; else nil
}

// Windows returns the number of memory windows bound to the region.
func (m *MR) Windows() int { return m.windows }

// Pieces returns the number of pieces of registered fast regions in the region's memory.
func (m *MR) Pieces() int { return m.fasts }

// part returns the region's memory from an offset on, or its first piece; ok is false if the region does not hold all
// of it.
func (m *MR) part(offset, length uint64) (memory []byte, ok bool) {
	if memory, ok = portion(m.Memory, offset, length); ok || m.fast == nil || !m.fast.holds(offset, length) {
		return memory, ok
	}
	if m.fast.signed() {
		return nil, true
	}
	return m.fast.piece(offset, length), true
}

// portion returns length bytes of memory from an offset on. An address below the base has wrapped round to a large
// offset.
func portion(memory []byte, offset, length uint64) (_ []byte, ok bool) {
	size := uint64(len(memory))
	if offset > size || length > size-offset {
		return nil, false
	}
	return memory[offset : offset+length : offset+length], true
}
