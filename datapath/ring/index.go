// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
)

const (
	consumerWords = 128 // offset of the words that the consumer writes
	slotsOffset   = 256
	// maxStride keeps the offset of every slot within 32 bits.
	maxStride = 1 << 11
)

// The limits of queues and their entries.
const (
	// MaxEntries is the maximum number of slots of a queue.
	MaxEntries = 1 << 20
	// MaxSGE is the maximum number of scatter/gather entries of a work request.
	MaxSGE = 16
	// MaxInline is the maximum inline data of a send slot, in bytes. The card allows 512 (verbs.DeviceAttr.MaxInline).
	MaxInline = 1024
	// MaxQueuePairs is the maximum number of queue pairs of a doorbell.
	MaxQueuePairs = 1 << 16
)

// ErrLayout reports that the geometry of a queue is invalid or does not fit its memory.
var ErrLayout = errors.New("ring: memory does not fit the queue")

// Geometry holds the number and size of a queue's slots. It is fixed at creation, and each side keeps its own copy.
type Geometry struct {
	Entries uint32 // number of slots, a power of two
	Stride  uint32 // size of a slot, in bytes
}

// Size returns the size of the queue's memory, in bytes.
func (g Geometry) Size() int { return slotsOffset + int(g.Entries)*int(g.Stride) }

// Entries rounds a number of entries up to a power of two, at least 1.
func Entries(atLeast uint32) uint32 {
	if atLeast <= 1 {
		return 1
	}
	return 1 << bits.Len32(atLeast-1)
}

// check returns ErrLayout if the geometry is invalid, its slots have fewer than least bytes, or memory is too short.
func (g Geometry) check(memory []byte, least uint32) error {
	switch {
	case g.Entries == 0 || g.Entries > MaxEntries || g.Entries&(g.Entries-1) != 0:
		return fmt.Errorf("%w: got %d entries, want a power of two up to %d", ErrLayout, g.Entries, MaxEntries)
	case g.Stride < least || g.Stride%16 != 0 || g.Stride > maxStride:
		return fmt.Errorf("%w: stride of %d bytes", ErrLayout, g.Stride)
	case len(memory) < g.Size():
		return fmt.Errorf("%w: got %d bytes of memory, want %d", ErrLayout, len(memory), g.Size())
	}
	return nil
}

// producer is the writing end of a queue.
type producer struct {
	entries  uint32
	next     uint32         // private index of the slot to write next
	consumed uint32         // the consumer's index as last loaded
	shared   *atomic.Uint32 // the producer's shared index
	peer     *atomic.Uint32 // the consumer's shared index
}

// free returns the number of slots that can be written. It loads the consumer's index only if fewer than want slots are
// free according to the last loaded one.
func (p *producer) free(want uint32) uint32 {
	if free := p.entries - (p.next - p.consumed); free >= want {
		return free
	}
	consumed := p.peer.Load() // pairs with consumer.publish and, of CQs, roced_cq_publish in verbs/c/queue.h
	if p.next-consumed > p.entries {
		return 0 // out of bounds: ignored until it is in bounds again
	}
	p.consumed = consumed
	return p.entries - (p.next - consumed)
}

// publish makes all slots before next visible to the consumer. It pairs with consumer.available and, for CQs,
// roced_cq_ready in verbs/c/queue.h.
func (p *producer) publish() { p.shared.Store(p.next) }

// consumer is the reading end of a queue.
type consumer struct {
	entries  uint32
	next     uint32         // private index of the slot to read next
	produced uint32         // the producer's index as last loaded
	shared   *atomic.Uint32 // the consumer's shared index
	peer     *atomic.Uint32 // the producer's shared index
}

// available returns the number of slots that can be read. It loads the producer's index only if fewer than want slots
// are available according to the last loaded one.
func (c *consumer) available(want uint32) uint32 {
	n := c.produced - c.next
	if n >= want {
		return n
	}
	produced := c.peer.Load() // pairs with producer.publish, roced_send_publish and roced_recv_publish
	if produced-c.produced > c.entries-n {
		return n // out of bounds, or decreased: slots that were available before stay available
	}
	c.produced = produced
	return produced - c.next
}

// publish makes the slots before next available to the producer. It pairs with producer.free and roced_recv_waiting.
func (c *consumer) publish() { c.shared.Store(c.next) }

// skip drops all entries in the queue.
func (c *consumer) skip() {
	c.next += c.available(c.entries)
	c.publish()
}

// slots holds the slots of a queue.
type slots struct {
	memory []byte
	stride uint32
	mask   uint32
}

// at returns the slot of an index. Indices are not reduced modulo the number of slots; they wrap at 2³².
func (s *slots) at(index uint32) []byte {
	from := (index & s.mask) * s.stride
	return s.memory[from : from+s.stride : from+s.stride]
}

func newSlots(memory []byte, g Geometry) slots {
	return slots{memory: memory[slotsOffset:g.Size():g.Size()], stride: g.Stride, mask: g.Entries - 1}
}

func newProducer(memory []byte, g Geometry) producer {
	p := producer{entries: g.Entries, shared: word(memory, 0), peer: word(memory, consumerWords)}
	p.next = p.shared.Load()
	p.consumed = p.next - p.entries // counts as full until the consumer's index is loaded
	return p
}

func newConsumer(memory []byte, g Geometry) consumer {
	c := consumer{entries: g.Entries, shared: word(memory, consumerWords), peer: word(memory, 0)}
	c.next = c.shared.Load()
	c.produced = c.next
	return c
}
