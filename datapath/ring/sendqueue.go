// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// A send work request for datagrams in its slot. The fields of connected queue pairs that differ are in rdma.go.
//
//	 0  id          8
//	 8  opcode      1
//	 9  flags       1
//	10  SGE count   2
//	12  immediate   4
//	16  AH          4
//	20  remote QPN  4
//	24  remote Q_Key 4
//	28  inline length 4
//	32  SGEs, 16 bytes each: address 8, length 4, lkey 4; or the inline data
const (
	sendID        = 0
	sendOpcode    = 8
	sendFlags     = 9
	sendSGECount  = 10
	sendImm       = 12
	sendAH        = 16
	sendRemoteQPN = 20
	sendQKey      = 24
	sendInline    = 28
	sendHeader    = 32

	// SGELen is the length of a scatter/gather entry in a slot, in bytes.
	SGELen = 16
)

// Send is the fixed part of a send work request for datagrams, copied from its slot.
type Send struct {
	ID         uint64
	Opcode     ib.Opcode
	Flags      ib.SendFlags
	SGECount   uint16
	Imm        uint32
	AH         uint32
	RemoteQPN  wire.QPN
	RemoteQKey wire.QKey
	InlineLen  uint32
}

// SendGeometry returns the geometry of a send queue with room for at least entries requests, each of maxSGE SGEs or
// maxInline bytes of inline data.
func SendGeometry(entries, maxSGE, maxInline uint32) Geometry {
	data := max(maxSGE*SGELen, maxInline)
	return Geometry{Entries: Entries(entries), Stride: (sendHeader + data + 63) &^ 63}
}

// SendRoom returns the maximum number of SGEs, and the maximum number of bytes of inline data, that fit into a slot.
func (g Geometry) SendRoom() (maxSGE, maxInline uint32) {
	return min((g.Stride-sendHeader)/SGELen, MaxSGE), min(g.Stride-sendHeader, MaxInline)
}

// sendProgress returns the consumer's word of a send queue: the low half is its index, as in every queue, and the high
// half is the number of completions written.
func sendProgress(memory []byte) *atomic.Uint64 { return &words64(memory, consumerWords, 1)[0] }

// sendErrorWord is set by the card while the queue pair is in ERR.
const sendErrorWord = consumerWords + 8

// SendProducer is the program's end of a send queue.
type SendProducer struct {
	producer
	slots
	progress *atomic.Uint64 // see SendConsumer.Publish
	failed   *atomic.Uint32
	header   int // number of bytes before the SGEs
}

// NewSendProducer returns the program's end of a send queue in memory. It returns ErrLayout if the geometry does not
// fit the memory.
func NewSendProducer(memory []byte, g Geometry) (*SendProducer, error) {
	return newSendProducer(memory, g, sendHeader)
}

func newSendProducer(memory []byte, g Geometry, header uint32) (*SendProducer, error) {
	if err := g.check(memory, header); err != nil {
		return nil, err
	}
	return &SendProducer{newProducer(memory, g), newSlots(memory, g), sendProgress(memory), word(memory, sendErrorWord), int(header)}, nil
}

// Outstanding returns the number of requests that still occupy a slot: those that the card has not consumed, and those
// whose completion has not been polled. polled is the number of completions of this queue polled so far, modulo 2³².
// The result is never too small, as the card publishes its index and its number of completions in one word.
func (q *SendProducer) Outstanding(polled uint32) uint32 {
	progress := q.progress.Load() // pairs with SendConsumer.Publish; the caller has loaded polled before
	consumed, waiting := uint32(progress), uint32(progress>>32)-polled
	if q.next-consumed > q.entries || waiting > q.entries {
		return q.entries // out of bounds: treated as full
	}
	return min(q.next-consumed+waiting, q.entries)
}

// Waiting returns the number of requests that the card has not consumed yet.
func (q *SendProducer) Waiting() uint32 {
	return min(q.next-uint32(q.progress.Load()), q.entries)
}

// Signaled returns the number of completions that the card has written for this queue, modulo 2³². After a reset, a
// program starts to count polled completions from this number.
func (q *SendProducer) Signaled() uint32 { return uint32(q.progress.Load() >> 32) }

// Failed reports whether the queue pair is in ERR, so that posted requests are flushed.
func (q *SendProducer) Failed() bool { return q.failed.Load() != 0 }

// Put writes the fixed part of a request for datagrams into the next slot and returns the rest of the slot, for SGEs
// (PutSGE) or inline data. The caller must have checked Outstanding.
func (q *SendProducer) Put(s *Send) []byte {
	slot := q.at(q.next)
	q.next++
	_ = slot[sendHeader-1]
	binary.LittleEndian.PutUint64(slot[sendID:], s.ID)
	binary.LittleEndian.PutUint64(slot[sendOpcode:], sendHead(s.Opcode, s.Flags, s.SGECount, s.Imm))
	binary.LittleEndian.PutUint64(slot[sendAH:], uint64(s.AH)|uint64(s.RemoteQPN)<<32)
	binary.LittleEndian.PutUint64(slot[sendQKey:], uint64(s.RemoteQKey)|uint64(s.InlineLen)<<32)
	return slot[sendHeader:]
}

// sendHead returns the 8 bytes of a slot that begin with the opcode.
func sendHead(o ib.Opcode, flags ib.SendFlags, sges uint16, imm uint32) uint64 {
	return uint64(o) | uint64(flags)<<8 | uint64(sges)<<16 | uint64(imm)<<32
}

// Publish makes all requests put so far visible to the card.
func (q *SendProducer) Publish() { q.publish() }

// PutSGE writes an entry at the start of b.
func PutSGE(b []byte, s ib.SGE) {
	_ = b[SGELen-1]
	binary.LittleEndian.PutUint64(b, s.Addr)
	binary.LittleEndian.PutUint64(b[8:], uint64(s.Length)|uint64(s.LKey)<<32)
}

// getSGE reads the entry at the start of b.
func getSGE(b []byte) ib.SGE {
	_ = b[SGELen-1]
	rest := binary.LittleEndian.Uint64(b[8:])
	return ib.SGE{Addr: binary.LittleEndian.Uint64(b), Length: uint32(rest), LKey: ib.LKey(rest >> 32)}
}

// SendConsumer is the card's end of a send queue.
type SendConsumer struct {
	consumer
	slots
	progress *atomic.Uint64
	failed   *atomic.Uint32
	signaled uint32
	header   int // bytes before the SGEs
}

// NewSendConsumer returns the card's end of a send queue in memory. It returns ErrLayout if the geometry does not fit
// the memory.
func NewSendConsumer(memory []byte, g Geometry) (*SendConsumer, error) {
	return newSendConsumer(memory, g, sendHeader)
}

func newSendConsumer(memory []byte, g Geometry, header uint32) (*SendConsumer, error) {
	if err := g.check(memory, header); err != nil {
		return nil, err
	}
	progress := sendProgress(memory)
	return &SendConsumer{newConsumer(memory, g), newSlots(memory, g), progress, word(memory, sendErrorWord), uint32(progress.Load() >> 32), int(header)}, nil
}

// Available returns the number of requests in the queue. It loads the program's index only if no requests are available
// according to the last loaded one.
func (q *SendConsumer) Available() uint32 { return q.available(1) }

// Entries returns the capacity of the queue, in requests.
func (q *SendConsumer) Entries() uint32 { return q.entries }

// Waiting returns the current number of requests in the queue.
func (q *SendConsumer) Waiting() uint32 { return q.available(q.entries) }

// Behind returns the number of requests in the queue after the next n.
func (q *SendConsumer) Behind(n uint32) uint32 { return max(q.available(n+1), n) - n }

// Data returns the rest of the slot of the request after the next n, as Get does.
func (q *SendConsumer) Data(n uint32) []byte { return q.at(q.next + n)[q.header:] }

// ID returns the ID of the next request.
func (q *SendConsumer) ID() uint64 { return binary.LittleEndian.Uint64(q.at(q.next)[sendID:]) }

// Get copies the fixed part of the next request of a UD queue pair into s, and returns the rest of its slot. The
// program can still change that memory: the caller must read each SGE only once (getSGE copies it), and copy inline
// data only once. The slot is not reused until Publish.
func (q *SendConsumer) Get(s *Send) (data []byte) {
	slot := q.at(q.next)
	_ = slot[sendHeader-1]
	s.ID = binary.LittleEndian.Uint64(slot[sendID:])
	head := binary.LittleEndian.Uint64(slot[sendOpcode:])
	s.Opcode, s.Flags, s.SGECount, s.Imm = ib.Opcode(head), ib.SendFlags(head>>8), uint16(head>>16), uint32(head>>32)
	to := binary.LittleEndian.Uint64(slot[sendAH:])
	s.AH, s.RemoteQPN = uint32(to), wire.QPN(to>>32)
	rest := binary.LittleEndian.Uint64(slot[sendQKey:])
	s.RemoteQKey, s.InlineLen = wire.QKey(rest), uint32(rest>>32)
	return slot[sendHeader:]
}

// Advance advances past the request that Get read. signaled is true if a completion was written for it.
func (q *SendConsumer) Advance(signaled bool) {
	q.next++
	if signaled {
		q.signaled++
	}
}

// Publish makes the slots of the requests read so far available to the program, together with the number of completions
// written. Both are in one word: a program that read only one of them after a change would count requests wrongly. It
// pairs with Outstanding and roced_send_progress, and must be called before the completions are published.
func (q *SendConsumer) Publish() { q.progress.Store(uint64(q.signaled)<<32 | uint64(q.next)) }

// SetFailed sets whether the queue pair is in ERR, for the program. It pairs with Failed and roced_send_failed.
func (q *SendConsumer) SetFailed(failed bool) { q.failed.Store(asWord(failed)) }

// Skip drops all requests in the queue, without completions.
func (q *SendConsumer) Skip() {
	q.next += q.available(q.entries)
	q.Publish()
}
