package ring

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
)

// A send work request in its slot. Connected services will put their remote
// address and key where AH, queue pair and Q_Key are, and what follows further on.
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

// LKey names a memory region in a scatter/gather entry.
type LKey uint32

// SGE is a scatter/gather entry: a piece of a memory region.
type SGE struct {
	Addr   uint64 // offset from the start of the region, in bytes
	Length uint32 // bytes
	LKey   LKey
}

// Send is the fixed part of a send work request, copied out of its slot.
type Send struct {
	ID         uint64
	Opcode     Opcode
	Flags      SendFlags
	SGECount   uint16
	Imm        uint32
	AH         uint32
	RemoteQPN  wire.QPN
	RemoteQKey wire.QKey
	InlineLen  uint32
}

// SendGeometry is the shape of a send queue with room for so many requests, with
// so many SGEs or so many inline bytes each.
func SendGeometry(entries, maxSGE, maxInline uint32) Geometry {
	data := max(maxSGE*SGELen, maxInline)
	return Geometry{Entries: Entries(entries), Stride: (sendHeader + data + 63) &^ 63}
}

// SendRoom is what a slot of the stride can hold: SGEs, or inline bytes.
func (g Geometry) SendRoom() (maxSGE, maxInline uint32) {
	return min((g.Stride-sendHeader)/SGELen, MaxSGE), min(g.Stride-sendHeader, MaxInline)
}

// sendProgress is the consumer's word of a send queue: its index in the low half,
// as in every queue, and the number of completions written in the high one.
func sendProgress(memory []byte) *atomic.Uint64 { return &words64(memory, consumerWords, 1)[0] }

// SendProducer is the program's end of a send queue.
type SendProducer struct {
	producer
	slots
	progress *atomic.Uint64 // see SendConsumer.Publish
}

// NewSendProducer takes the program's end of the queue in memory.
func NewSendProducer(memory []byte, g Geometry) (*SendProducer, error) {
	if err := g.check(memory, sendHeader); err != nil {
		return nil, err
	}
	return &SendProducer{newProducer(memory, g), newSlots(memory, g), sendProgress(memory)}, nil
}

// Outstanding is the number of requests that still hold a slot, given how many
// completions of the queue have been polled: those that the card has not taken,
// and those whose completion waits in a CQ, or is about to. Both numbers are in one word of
// the card's, so that what is read here is never too small.
func (q *SendProducer) Outstanding(polled uint32) uint32 {
	progress := q.progress.Load()
	consumed, waiting := uint32(progress), uint32(progress>>32)-polled
	if q.next-consumed > q.entries || waiting > q.entries {
		return q.entries // the card's words make no sense: full
	}
	return min(q.next-consumed+waiting, q.entries)
}

// Waiting is the number of requests that the card has not taken yet.
func (q *SendProducer) Waiting() uint32 {
	return min(q.next-uint32(q.progress.Load()), q.entries)
}

// Signaled is the number of completions that the card has written for this
// queue, modulo 2³²: where a program starts to count after a reset.
func (q *SendProducer) Signaled() uint32 { return uint32(q.progress.Load() >> 32) }

// Put writes a request without its data into the next slot and gives the rest of
// the slot, for SGEs (PutSGE) or inline data. The caller has checked Outstanding.
func (q *SendProducer) Put(s *Send) []byte {
	slot := q.at(q.next)
	q.next++
	_ = slot[sendHeader-1]
	binary.LittleEndian.PutUint64(slot[sendID:], s.ID)
	binary.LittleEndian.PutUint64(slot[sendOpcode:],
		uint64(s.Opcode)|uint64(s.Flags)<<8|uint64(s.SGECount)<<16|uint64(s.Imm)<<32)
	binary.LittleEndian.PutUint64(slot[sendAH:], uint64(s.AH)|uint64(s.RemoteQPN)<<32)
	binary.LittleEndian.PutUint64(slot[sendQKey:], uint64(s.RemoteQKey)|uint64(s.InlineLen)<<32)
	return slot[sendHeader:]
}

// Publish hands everything put so far to the card.
func (q *SendProducer) Publish() { q.publish() }

// PutSGE writes an entry at the start of b.
func PutSGE(b []byte, s SGE) {
	_ = b[SGELen-1]
	binary.LittleEndian.PutUint64(b, s.Addr)
	binary.LittleEndian.PutUint64(b[8:], uint64(s.Length)|uint64(s.LKey)<<32)
}

// GetSGE reads the entry at the start of b.
func GetSGE(b []byte) SGE {
	_ = b[SGELen-1]
	rest := binary.LittleEndian.Uint64(b[8:])
	return SGE{binary.LittleEndian.Uint64(b), uint32(rest), LKey(rest >> 32)}
}

// SendConsumer is the card's end of a send queue.
type SendConsumer struct {
	consumer
	slots
	progress *atomic.Uint64
	signaled uint32
}

// NewSendConsumer takes the card's end of the queue in memory.
func NewSendConsumer(memory []byte, g Geometry) (*SendConsumer, error) {
	if err := g.check(memory, sendHeader); err != nil {
		return nil, err
	}
	progress := sendProgress(memory)
	return &SendConsumer{newConsumer(memory, g), newSlots(memory, g), progress, uint32(progress.Load() >> 32)}, nil
}

// Available is the number of requests that wait.
func (q *SendConsumer) Available() uint32 { return q.available(1) }

// Get copies the fixed part of the next request into s, and gives the rest of its
// slot. That is still the program's memory: each SGE in it is read once (GetSGE
// copies), and inline data is what it is when it is copied. The slot stays the
// card's until Publish.
func (q *SendConsumer) Get(s *Send) (data []byte) {
	slot := q.at(q.next)
	_ = slot[sendHeader-1]
	s.ID = binary.LittleEndian.Uint64(slot[sendID:])
	head := binary.LittleEndian.Uint64(slot[sendOpcode:])
	s.Opcode, s.Flags, s.SGECount, s.Imm = Opcode(head), SendFlags(head>>8), uint16(head>>16), uint32(head>>32)
	to := binary.LittleEndian.Uint64(slot[sendAH:])
	s.AH, s.RemoteQPN = uint32(to), wire.QPN(to>>32)
	rest := binary.LittleEndian.Uint64(slot[sendQKey:])
	s.RemoteQKey, s.InlineLen = wire.QKey(rest), uint32(rest>>32)
	return slot[sendHeader:]
}

// Advance steps over the request that Get read; signaled says that a completion
// for it was written.
func (q *SendConsumer) Advance(signaled bool) {
	q.next++
	if signaled {
		q.signaled++
	}
}

// Publish gives the slots stepped over back to the program, and the number of
// completions with them: one word, since a program that saw one without the other
// would count requests twice.
func (q *SendConsumer) Publish() { q.progress.Store(uint64(q.signaled)<<32 | uint64(q.next)) }

// Skip drops all requests that wait, without completions.
func (q *SendConsumer) Skip() {
	q.next += q.available(q.entries)
	q.Publish()
}
