// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math/bits"
	"sync/atomic"
)

// Doorbell tells the card which of a program's queue pairs have work. It has a bit for each queue pair and a summary
// bit for each 64 of them, so that the cost of polling hardly depends on their number. The program sets bits, and the
// card clears them.
//
//	  0  asleep 4        not 0: the card does not poll the doorbell, so the program must call it
//	  4  ended 4         not 0: the session has ended
//	128  summary         a bit for each word of bits
//	...  bits            a bit for each queue pair
type Doorbell struct {
	asleep  *atomic.Uint32
	ended   *atomic.Uint32
	summary []atomic.Uint64
	bits    []atomic.Uint64

	// Private to the card.
	next int // index of the word of bits at which Collect starts
	used int // number of summary words that Collect reads
}

const (
	endedWord     = 4
	bitWords      = MaxQueuePairs / 64
	summaryWords  = bitWords / 64
	summaryOffset = 128
	bitsOffset    = summaryOffset + summaryWords*8

	// DoorbellSize is the size of a doorbell in bytes.
	DoorbellSize = bitsOffset + bitWords*8
)

// NewDoorbell returns a doorbell in memory of at least DoorbellSize bytes.
func NewDoorbell(memory []byte) *Doorbell {
	return &Doorbell{
		asleep:  word(memory, 0),
		ended:   word(memory, endedWord),
		summary: words64(memory, summaryOffset, summaryWords),
		bits:    words64(memory, bitsOffset, bitWords),
		used:    summaryWords,
	}
}

// Serve sets the number of queue pairs. It is called by the card. Collect reads no further summary words, which makes
// polling cheaper.
func (d *Doorbell) Serve(queuePairs int) { d.used = min((queuePairs+64*64-1)/(64*64), summaryWords) }

// Ring marks a queue pair as having work, and reports whether the card is asleep and must be called. The caller must
// have published the queue's index before.
func (d *Doorbell) Ring(queuePair uint32) (wake bool) {
	index := queuePair % MaxQueuePairs
	set(&d.bits[index/64], index%64)
	set(&d.summary[index/64/64], index/64%64)
	return d.asleep.Load() != 0 // pairs with SetAsleep: the bits are stored before asleep is loaded
}

// set sets a bit. If the bit is already set, the card has not cleared it yet, and will read the index that was
// published before. It pairs with take, as roced_set_bit in verbs/c/queue.h does: the index is stored before the bit is
// loaded.
func set(word *atomic.Uint64, bit uint32) {
	if word.Load()&(1<<bit) == 0 {
		word.Or(1 << bit)
	}
}

// Collect clears bits and calls work for each queue pair whose bit was set. It stops after most bits; as it clears
// whole words, it may clear up to 63 more. The next call continues there, so that every queue pair is reached. It
// returns the number of bits that were set.
func (d *Doorbell) Collect(most int, work func(queuePair uint32)) (taken int) {
	place := d.next
	for range d.used + 1 { // the first word is read twice: first from place on, then the part before place
		s, before := place/64, uint64(1)<<(place%64)-1
		groups := take(&d.summary[s])
		giveBack(&d.summary[s], groups&before)
		for groups &^= before; groups != 0; groups &= groups - 1 {
			w := s*64 + bits.TrailingZeros64(groups)
			if taken >= most {
				giveBack(&d.summary[s], groups)
				d.next = w
				return taken
			}
			for set := take(&d.bits[w]); set != 0; set &= set - 1 {
				work(uint32(w*64 + bits.TrailingZeros64(set)))
				taken++
			}
		}
		if place = (s + 1) * 64; place >= d.used*64 {
			place = 0
		}
	}
	d.next = 0
	return taken
}

func giveBack(word *atomic.Uint64, bits uint64) {
	if bits != 0 {
		word.Or(bits)
	}
}

// take clears and returns the bits of a word. It pairs with set: the bits are cleared before the index is loaded
// (consumer.available).
func take(word *atomic.Uint64) uint64 {
	if word.Load() == 0 {
		return 0
	}
	return word.Swap(0)
}

func asWord(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Pending reports whether any bit is set.
func (d *Doorbell) Pending() bool {
	for s := range d.used {
		if d.summary[s].Load() != 0 {
			return true
		}
	}
	return false
}

// SetAsleep sets whether programs must call the card after Ring. The card calls it before its last poll of the
// doorbell. It pairs with Ring and roced_ring: asleep is stored before the bits are loaded (Collect, Pending).
func (d *Doorbell) SetAsleep(asleep bool) { d.asleep.Store(asWord(asleep)) }

// Asleep reports whether programs must call the card after Ring.
func (d *Doorbell) Asleep() bool { return d.asleep.Load() != 0 }

// End marks the session as ended. It is called by the card. The caller must then wake the threads that sleep on the
// returned word as a futex.
func (d *Doorbell) End() *atomic.Uint32 {
	d.ended.Store(1)
	return d.ended
}

// Ended reports whether the session has ended.
func (d *Doorbell) Ended() bool { return d.ended.Load() != 0 }
