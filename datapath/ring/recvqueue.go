// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/roced/roced/verbs/ib"
)

// A receive work request in its slot.
//
//	 0  id         8
//	 8  SGE count  4
//	12  reserved   4
//	16  SGEs, 16 bytes each
const (
	recvID       = 0
	recvSGECount = 8
	recvHeader   = 16
)

// RecvGeometry returns the geometry of a receive queue with room for at least entries requests of maxSGE SGEs each.
func RecvGeometry(entries, maxSGE uint32) Geometry {
	return Geometry{Entries: Entries(entries), Stride: (recvHeader + maxSGE*SGELen + 31) &^ 31}
}

// RecvRoom returns the number of SGEs that a slot has room for.
func (g Geometry) RecvRoom() uint32 { return min((g.Stride-recvHeader)/SGELen, MaxSGE) }

// recvFlushWord is set by the card while the queue pair is in ERR. Receive requests that are posted in this state are
// not consumed by packets, so the program must ring the doorbell to have them flushed.
const recvFlushWord = consumerWords + 4

// RecvProducer is the program's end of a receive queue. A slot of a queue pair's own queue is free again when the
// completion of its request has been polled; the program counts these completions (Outstanding). A slot of an SRQ is
// free again when the card has consumed its request (Waiting).
type RecvProducer struct {
	producer
	slots
	flush *atomic.Uint32
}

// NewRecvProducer returns the program's end of a receive queue in memory. It returns ErrLayout if the geometry does not
// fit the memory.
func NewRecvProducer(memory []byte, g Geometry) (*RecvProducer, error) {
	if err := g.check(memory, recvHeader); err != nil {
		return nil, err
	}
	return &RecvProducer{newProducer(memory, g), newSlots(memory, g), word(memory, recvFlushWord)}, nil
}

// Outstanding returns the number of requests that still occupy a slot. polled is the number of completions of this
// queue polled so far, modulo 2³².
func (q *RecvProducer) Outstanding(polled uint32) uint32 { return min(q.next-polled, q.entries) }

// Waiting returns the number of requests in an SRQ that the card has not consumed, according to its published index. A
// queue whose index is out of bounds counts as full.
func (q *RecvProducer) Waiting() uint32 { return min(q.next-q.peer.Load(), q.entries) }

// Posted returns the number of requests put since the queue was created, modulo 2³².
func (q *RecvProducer) Posted() uint32 { return q.next }

// MustRing reports whether the queue pair is in ERR, so that the program must ring the doorbell after a post. It pairs
// with SetFlush: the index is stored before this word is loaded.
func (q *RecvProducer) MustRing() bool { return q.flush.Load() != 0 }

// Put writes a request into the next slot. The caller must have checked that a slot is free and that the SGEs fit into
// it.
func (q *RecvProducer) Put(id uint64, sges []ib.SGE) {
	slot := q.at(q.next)
	q.next++
	binary.LittleEndian.PutUint64(slot[recvID:], id)
	binary.LittleEndian.PutUint32(slot[recvSGECount:], uint32(len(sges)))
	for i, s := range sges {
		PutSGE(slot[recvHeader+i*SGELen:], s)
	}
}

// Publish makes all requests put so far visible to the card.
func (q *RecvProducer) Publish() { q.publish() }

// Recv is a receive work request, copied from its slot.
type Recv struct {
	ID   uint64
	list [MaxSGE * SGELen]byte
	used int // of list, in bytes
}

// List returns the request's SGE list: a copy, which the program cannot change.
func (r *Recv) List() SGList { return r.list[:r.used] }

// RecvConsumer is the card's end of a receive queue.
type RecvConsumer struct {
	consumer
	slots
	flush *atomic.Uint32
}

// NewRecvConsumer returns the card's end of a receive queue in memory. It returns ErrLayout if the geometry does not
// fit the memory.
func NewRecvConsumer(memory []byte, g Geometry) (*RecvConsumer, error) {
	if err := g.check(memory, recvHeader); err != nil {
		return nil, err
	}
	return &RecvConsumer{newConsumer(memory, g), newSlots(memory, g), word(memory, recvFlushWord)}, nil
}

// Peek copies the next request and reports whether there was one. Its list is never longer than a slot has room for.
func (q *RecvConsumer) Peek(r *Recv) bool {
	if q.available(1) == 0 {
		return false
	}
	slot := q.at(q.next)
	r.ID = binary.LittleEndian.Uint64(slot[recvID:])
	count := min(binary.LittleEndian.Uint32(slot[recvSGECount:]), uint32(len(slot)-recvHeader)/SGELen, MaxSGE)
	if count == 1 { // the usual case: a copy of known length
		*(*[SGELen]byte)(r.list[:]) = [SGELen]byte(slot[recvHeader:])
		r.used = SGELen
	} else {
		r.used = copy(r.list[:], slot[recvHeader:][:count*SGELen])
	}
	return true
}

// Entries returns the capacity of the queue, in requests.
func (q *RecvConsumer) Entries() uint32 { return q.entries }

// Waiting returns the number of requests in the queue.
func (q *RecvConsumer) Waiting() uint32 { return q.available(q.entries) }

// Publish makes the slots of the consumed requests available to the program. Only SRQs need it.
func (q *RecvConsumer) Publish() { q.publish() }

// Advance advances past the request that Peek read.
func (q *RecvConsumer) Advance() { q.next++ }

// SetFlush sets whether the program must ring the doorbell to have posted requests flushed. It pairs with MustRing and
// roced_recv_must_ring: this word is stored before the index is loaded (Peek).
func (q *RecvConsumer) SetFlush(flush bool) { q.flush.Store(asWord(flush)) }

// Skip drops all requests in the queue, without completions.
func (q *RecvConsumer) Skip() { q.skip() }
