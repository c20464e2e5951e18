package xsk

import (
	"math"

	"golang.org/x/sys/unix"
)

// noChunk is an address that lies in no UMEM.
const noChunk = math.MaxUint64

// takenBack are the descriptors that TakeBack made void, until the kernel has gone by them.
type takenBack struct {
	slots   []slot // of the descriptors, in the order of the TX ring
	invalid uint64 // the kernel's count of wrong descriptors before
	frames  int    // found not to have been sent, and not told yet
}

// TakeBack keeps frames that wait because the interface is down from going out when it is
// up again: their descriptors are made void. It does so when the kernel answers ENETDOWN, which
// means that it takes nothing; in zero-copy, where the driver decides, never.
//
// Which of them it had sent is not known at once, since it writes down what it took only
// when it finds nothing more. It passes over void descriptors when the interface is up again,
// counts them, and completes only the others: then the slots of those passed over are free, and
// TakenBack tells how many frames they were.
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

// TakenBack is how many frames more will never be sent because of TakeBack.
func (s *Socket) TakenBack() (frames int) {
	frames, s.back.frames = s.back.frames, 0
	return frames
}

// settleBack is called when the kernel has been through the TX ring: it went in order, so
// the last descriptors are those that it passed over.
func (s *Socket) settleBack() {
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
			s.free = append(s.free, place)
			s.back.frames++
		}
	}
	s.back.slots = s.back.slots[:0]
}
