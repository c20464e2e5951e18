package region

import (
	"github.com/roced/roced/verbs/ib"
)

// PD is the number of a protection domain. A request may use only objects of its queue pair's PD.
type PD uint32

// MR is the engine's entry of a memory region. SGEs hold addresses from Base on, which stands for
// the start of Memory; the engine never uses an address that a program gave.
type MR struct {
	LKey   ib.LKey
	PD     PD
	Base   uint64 // chosen by the program; 0 makes addresses offsets
	Memory []byte
	Null   bool           // it has no memory, and any address: it is read as zeros, what is written is lost
	Write  bool           // local write access: receives may write here
	Remote ib.AccessFlags // what peers may do: remote read, write, atomic; and whether windows may be bound to it

	windows int   // bound to it
	fasts   int   // pieces of fast regions that are of its memory
	fast    *fast // of one that requests register; else nil
}

// Windows is how many memory windows are bound to the region.
func (m *MR) Windows() int { return m.windows }

// Pieces is how many pieces of registered fast regions are the region's memory.
func (m *MR) Pieces() int { return m.fasts }

// part is the region's memory from an offset on, or its first piece; ok is false if not all of it is the region's.
func (m *MR) part(offset, length uint64) (memory []byte, ok bool) {
	if memory, ok = portion(m.Memory, offset, length); ok || m.fast == nil || !m.fast.holds(offset, length) {
		return memory, ok
	}
	if m.fast.signed() {
		return nil, true
	}
	return m.fast.piece(offset, length), true
}

// portion is length bytes of memory from an offset on. An address below the base has wrapped round to a
// large offset.
func portion(memory []byte, offset, length uint64) (_ []byte, ok bool) {
	size := uint64(len(memory))
	if offset > size || length > size-offset {
		return nil, false
	}
	return memory[offset : offset+length : offset+length], true
}
