// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"math"

	"golang.org/x/sys/unix"
)

// noChunk is an address outside every UMEM. A descriptor with it is invalid.
const noChunk = math.MaxUint64

// takenBack holds the descriptors that TakeBack made invalid, until the kernel has skipped them.
type takenBack struct {
	slots   []slot // slots of the descriptors, in the order of the TX ring
	invalid uint64 // the kernel's count of invalid descriptors before TakeBack
	frames  int    // number of frames found unsent since the last TakenBack
}

// TakeBack prevents frames that wait while the interface is down from being sent when it is up again, by making their
// descriptors invalid. It does so only if the kernel returns ENETDOWN, which means that the kernel consumes no
// descriptors, and never in zero-copy mode, where the driver consumes them.
//
// Some of these frames may have been sent already, because the kernel updates its index only when it finds no more
// frames to send. When the interface is up again, the kernel skips the invalid descriptors and counts them, and
// completes the frames that were sent. Only then are the slots of the skipped ones free, and TakenBack returns the
// number of their frames.
func (s *Socket) TakeBack() {
	if s.info.ZeroCopy || len(s.back.slots) > 0 || s.tx.pending() == 0 {
		return
	}
	if s.Flush(); s.lastKick != ErrDown {
		return
	}
	before, err := s.Stats()
	if err != nil {
		return
	}
	s.back.invalid = before.TxInvalidDescs
	for i := s.tx.pending(); i > 0; i-- {
		desc := &s.tx.entries[(s.tx.next-i)&s.tx.mask]
		if place, ok := s.slotOf(desc.Addr); ok {
			s.back.slots = append(s.back.slots, place)
		}
		*desc = unix.XDPDesc{Addr: noChunk}
	}
}

// TakenBack returns the number of frames found unsent because of TakeBack, since the last call.
func (s *Socket) TakenBack() (frames int) {
	frames, s.back.frames = s.back.frames, 0
	return frames
}

// finishTakeBack frees the slots of the skipped descriptors after the kernel has processed the TX ring. The kernel has
// processed it in order, so the skipped descriptors are the last ones.
func (s *Socket) finishTakeBack() {
	after, err := s.Stats()
	if err != nil {
		return
	}
	passed := min(after.TxInvalidDescs-s.back.invalid, uint64(len(s.back.slots)))
	for _, place := range s.back.slots[uint64(len(s.back.slots))-passed:] {
		if s.owed[place] == 0 || s.owed[place] == ownedByCaller {
			continue
		}
		if s.owed[place]--; s.owed[place] == 0 {
			s.freeSlot(place)
			s.back.frames++
		}
	}
	s.back.slots = s.back.slots[:0]
}
