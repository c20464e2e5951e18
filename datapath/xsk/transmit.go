// SPDX-License-Identifier: Apache-2.0

package xsk

import "golang.org/x/sys/unix"

// slot is the number of a slot for sending. Only Reserve converts a slot to a Reserved, so that a frame in flight
// cannot be written to.
type slot uint32

// ownedByCaller marks a reserved slot in Socket.owed. A frame in flight has one outstanding completion for each chunk
// (at most maxChunksPerFrame), and a free slot has none.
const ownedByCaller = 0xff

// Reserved is a frame to build. It must be passed once to Submit or Cancel of the same socket.
type Reserved struct {
	buffer []byte
	slot   slot
}

// Bytes returns the memory to build the frame in: MaxFrame bytes, which are not cleared.
func (r Reserved) Bytes() []byte { return r.buffer }

// Reserve reserves a free slot. It returns false when all slots are reserved or in flight.
func (s *Socket) Reserve() (Reserved, bool) {
	if len(s.free) == 0 {
		s.reclaim()
	}
	last := len(s.free) - 1
	if last < 0 {
		return Reserved{}, false
	}
	taken := s.free[last]
	s.free = s.free[:last]
	s.owed[taken] = ownedByCaller
	start := s.start(taken)
	end := start + s.maxFrame
	return Reserved{s.umem[start:end:end], taken}, true
}

// Submit queues the first length bytes of the frame; the next Flush sends them. It panics if length exceeds the frame,
// or if the frame is not reserved.
func (s *Socket) Submit(r Reserved, length int) {
	if length <= 0 || length > len(r.buffer) || s.owed[r.slot] != ownedByCaller {
		panic("xsk: Submit with an invalid length, or of a frame that is not reserved")
	}
	s.submitted = true
	chunks := uint8(0)
	// All descriptors of a frame except the last have full chunks and the flag that more follow.
	addr, left := s.start(r.slot), uint64(length)
	for ; left > s.chunkSize; left -= s.chunkSize {
		s.tx.put(unix.XDPDesc{Addr: addr, Len: uint32(s.chunkSize), Options: unix.XDP_PKT_CONTD})
		addr += s.chunkSize
		chunks++
	}
	s.tx.put(unix.XDPDesc{Addr: addr, Len: uint32(left)})
	s.owed[r.slot] = chunks + 1
	s.inFlight++
}

// Cancel frees the slot. It panics if the frame is not reserved.
func (s *Socket) Cancel(r Reserved) {
	if len(r.buffer) == 0 || s.owed[r.slot] != ownedByCaller {
		panic("xsk: Cancel of a frame that is not reserved")
	}
	s.owed[r.slot] = 0
	s.free = append(s.free, r.slot)
}

// reclaim frees the slots whose frames the kernel has completed.
func (s *Socket) reclaim() {
	done := s.completion.available()
	for i := range done {
		s.complete(s.completion.at(i))
	}
	if done > 0 {
		s.completion.release(done)
	}
}

// complete counts a completion, and frees the slot at its last one. It ignores an address that does not belong to a
// frame in flight.
func (s *Socket) complete(addr uint64) {
	done, ok := s.slotOf(addr)
	if !ok || s.owed[done] == 0 || s.owed[done] == ownedByCaller {
		return
	}
	s.owed[done]--
	if s.owed[done] == 0 {
		s.freeSlot(done)
	}
}

// freeSlot frees the slot of a frame that was in flight.
func (s *Socket) freeSlot(done slot) {
	s.poison(s.start(done), s.slotSize())
	s.free = append(s.free, done)
	s.inFlight--
}

// slotOf returns the slot that contains an address.
func (s *Socket) slotOf(addr uint64) (place slot, ok bool) {
	chunk := (addr - s.rxSize()) >> s.chunkShift
	if chunk >= uint64(s.txSlots)*uint64(s.chunksPerFrame) {
		return 0, false
	}
	return slot(uint32(chunk) / s.chunksPerFrame), true
}

// start returns the offset of a slot in the UMEM.
func (s *Socket) start(place slot) uint64 {
	return s.rxSize() + uint64(place)*s.slotSize()
}

// InFlight returns the number of frames that were submitted and are not completed yet: they are in the TX ring, or
// owned by the kernel.
func (s *Socket) InFlight() int {
	s.reclaim()
	return s.inFlight
}
