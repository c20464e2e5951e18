// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// A completion in its slot of 64 bytes.
//
//	 0  id          8
//	 8  status      1
//	 9  opcode      1
//	10  flags       2
//	12  byte length 4
//	16  immediate   4
//	20  QP number   4
//	24  source QP   4
//	28  token       4   see CQE.Token
//	32  vendor error 4
//	36  P_Key index 2
//	38  source MAC  6
//	44  VLAN        2
//	46  network header 1
//	47  service level  1
//	48  port        1
//	49  reserved to 64
//
// In a queue with timestamps a slot has 128 bytes:
//
//	64  timestamp   8   see CQE.Timestamp
//	72  wall clock  8   see CQE.Wallclock
//	80  reserved to 128
const (
	cqeID            = 0
	cqeStatus        = 8
	cqeByteLen       = 12
	cqeImm           = 16
	cqeQPN           = 20
	cqeSourceQP      = 24
	cqeToken         = 28
	cqeVendor        = 32
	cqePKeyIndex     = 36
	cqeSMAC          = 38
	cqeSMACRest      = 40 // the last 4 bytes; the first 2 share a word with the P_Key index
	cqePort          = 48
	cqeStride        = 64
	cqeTimestamp     = 64
	cqeWallclock     = 72
	cqeStampedStride = 128
	cqErrorWord      = 4
)

// CQE is a completion queue entry.
type CQE struct {
	ID        uint64
	Status    ib.WCStatus
	Opcode    ib.WCOpcode
	Flags     ib.WCFlags
	ByteLen   uint32 // number of bytes; for UD including the 40 bytes of the GRH
	Imm       uint32 // immediate data, or the key that was invalidated
	QPN       wire.QPN
	SourceQP  wire.QPN
	Token     uint32 // the CompletionToken of the QP, which changes with each reset and so marks older entries
	VendorErr uint32
	PKeyIndex uint16

	// From the frame of a received packet.
	SMAC          wire.MAC
	VLAN          uint16 // VLAN identifier
	NetworkHeader ib.NetworkType
	SL            uint8 // priority of the VLAN tag
	Port          uint8

	// The time at which the card wrote the entry, in a queue with timestamps. Otherwise these are neither written nor
	// read.
	Timestamp uint64 // ns of the card's free-running clock
	Wallclock uint64 // ns since 1970, UTC
}

// Set sets the given fields and clears the other ones, except the timestamps.
//
// It assigns field by field, because the compiler would build a composite literal in temporary memory, and copy it with
// wider loads than the stores that wrote it. This would defeat store forwarding and stall the processor.
func (e *CQE) Set(id uint64, status ib.WCStatus, opcode ib.WCOpcode, qpn wire.QPN, token uint32) {
	e.ID, e.Status, e.Opcode, e.Flags = id, status, opcode, 0
	e.ByteLen, e.Imm, e.QPN, e.SourceQP, e.Token = 0, 0, qpn, 0, token
	e.VendorErr, e.PKeyIndex = 0, 0
	e.SMAC, e.VLAN, e.NetworkHeader, e.SL, e.Port = wire.MAC{}, 0, 0, 0, 0
}

// CompletionGeometry returns the geometry of a CQ with at least the given number of entries.
func CompletionGeometry(entries uint32) Geometry {
	return Geometry{Entries: Entries(entries), Stride: cqeStride}
}

// StampedGeometry returns the geometry of a CQ whose entries have timestamps.
func StampedGeometry(entries uint32) Geometry {
	return Geometry{Entries: Entries(entries), Stride: cqeStampedStride}
}

// Stamped reports whether the entries of a CQ with this geometry have timestamps.
func (g Geometry) Stamped() bool { return g.Stride >= cqeStampedStride }

// CompletionProducer is the card's end of a completion queue.
type CompletionProducer struct {
	producer
	slots
	arms
	failed  *atomic.Uint32
	stamped bool
}

// NewCompletionProducer returns the card's end of a completion queue in memory. It returns ErrLayout if the geometry
// does not fit the memory.
func NewCompletionProducer(memory []byte, g Geometry) (*CompletionProducer, error) {
	if err := g.check(memory, cqeStride); err != nil {
		return nil, err
	}
	return &CompletionProducer{newProducer(memory, g), newSlots(memory, g), newArms(memory), word(memory, cqErrorWord), g.Stamped()}, nil
}

// Put writes an entry into the next slot. If the queue is full (an overrun), it returns false and has written nothing.
func (q *CompletionProducer) Put(e *CQE) bool {
	if q.free(1) == 0 {
		return false
	}
	whole := q.at(q.next)
	slot := (*[cqeStride]byte)(whole)
	q.next++
	if q.stamped {
		binary.LittleEndian.PutUint64(whole[cqeTimestamp:], e.Timestamp)
		binary.LittleEndian.PutUint64(whole[cqeWallclock:], e.Wallclock)
	}
	binary.LittleEndian.PutUint64(slot[cqeID:], e.ID)
	binary.LittleEndian.PutUint64(slot[cqeStatus:],
		uint64(e.Status)|uint64(e.Opcode)<<8|uint64(e.Flags)<<16|uint64(e.ByteLen)<<32)
	binary.LittleEndian.PutUint64(slot[cqeImm:], uint64(e.Imm)|uint64(e.QPN)<<32)
	binary.LittleEndian.PutUint64(slot[cqeSourceQP:], uint64(e.SourceQP)|uint64(e.Token)<<32)
	// Read with the widths of the stores that wrote it, 4 and 2 bytes; see Set.
	mac := uint64(binary.LittleEndian.Uint32(e.SMAC[:])) | uint64(binary.LittleEndian.Uint16(e.SMAC[4:]))<<32
	binary.LittleEndian.PutUint64(slot[cqeVendor:], uint64(e.VendorErr)|uint64(e.PKeyIndex)<<32|mac<<48)
	binary.LittleEndian.PutUint64(slot[cqeSMACRest:],
		mac>>16|uint64(e.VLAN)<<32|uint64(e.NetworkHeader)<<48|uint64(e.SL)<<56)
	binary.LittleEndian.PutUint64(slot[cqePort:], uint64(e.Port))
	return true
}

// Publish makes all entries put so far visible to the program.
func (q *CompletionProducer) Publish() { q.publish() }

// Fail marks the queue as overrun, permanently. The caller must have published the entries before. It pairs with Failed
// and roced_cq_failed.
func (q *CompletionProducer) Fail() { q.failed.Store(1) }

// Stamped reports whether entries need timestamps.
func (q *CompletionProducer) Stamped() bool { return q.stamped }

// Written returns the number of entries put so far, modulo 2³².
func (q *CompletionProducer) Written() uint32 { return q.next }

// Entries returns the capacity of the queue, in completions.
func (q *CompletionProducer) Entries() uint32 { return q.entries }

// Unread returns the number of entries that the program has not read, according to its index. If the index is out of
// bounds, the queue counts as full.
func (q *CompletionProducer) Unread() uint32 { return q.entries - q.free(q.entries) }

// CompletionConsumer is the program's end of a completion queue.
type CompletionConsumer struct {
	consumer
	slots
	arms
	failed  *atomic.Uint32
	stamped bool
}

// NewCompletionConsumer returns the program's end of a completion queue in memory. It returns ErrLayout if the geometry
// does not fit the memory.
func NewCompletionConsumer(memory []byte, g Geometry) (*CompletionConsumer, error) {
	if err := g.check(memory, cqeStride); err != nil {
		return nil, err
	}
	return &CompletionConsumer{newConsumer(memory, g), newSlots(memory, g), newArms(memory), word(memory, cqErrorWord), g.Stamped()}, nil
}

// Entries returns the capacity of the queue, in completions.
func (q *CompletionConsumer) Entries() uint32 { return q.entries }

// Available returns the number of entries that can be read. It loads the card's index only if fewer than want entries
// are available according to the last loaded one.
func (q *CompletionConsumer) Available(want uint32) uint32 { return q.available(want) }

// Get copies the next entry and advances past it. The caller must have checked Available.
func (q *CompletionConsumer) Get(e *CQE) {
	whole := q.at(q.next)
	slot := (*[cqeStride]byte)(whole)
	q.next++
	if q.stamped {
		e.Timestamp = binary.LittleEndian.Uint64(whole[cqeTimestamp:])
		e.Wallclock = binary.LittleEndian.Uint64(whole[cqeWallclock:])
	}
	e.ID = binary.LittleEndian.Uint64(slot[cqeID:])
	head := binary.LittleEndian.Uint64(slot[cqeStatus:])
	e.Status, e.Opcode, e.Flags, e.ByteLen = ib.WCStatus(head), ib.WCOpcode(head>>8), ib.WCFlags(head>>16), uint32(head>>32)
	mid := binary.LittleEndian.Uint64(slot[cqeImm:])
	e.Imm, e.QPN = uint32(mid), wire.QPN(mid>>32)
	from := binary.LittleEndian.Uint64(slot[cqeSourceQP:])
	e.SourceQP, e.Token = wire.QPN(from), uint32(from>>32)
	rest := binary.LittleEndian.Uint64(slot[cqeVendor:])
	e.VendorErr, e.PKeyIndex = uint32(rest), uint16(rest>>32)
	e.SMAC = wire.MAC(slot[cqeSMAC : cqeSMAC+6])
	frame := binary.LittleEndian.Uint64(slot[cqeSMACRest:])
	e.VLAN, e.NetworkHeader, e.SL = uint16(frame>>32), ib.NetworkType(frame>>48), uint8(frame>>56)
	e.Port = slot[cqePort]
}

// Publish makes the slots of the entries read so far available to the card.
func (q *CompletionConsumer) Publish() { q.publish() }

// Failed reports whether the queue was overrun.
func (q *CompletionConsumer) Failed() bool { return q.failed.Load() != 0 }
