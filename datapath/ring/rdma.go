// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// MaxMessage is the maximum length of a connection's message, in bytes. With the smallest MTU it uses a quarter of all
// PSNs.
const MaxMessage = 1 << 30

// A send work request of a connected queue pair has these fields instead of those of a datagram, and after the fixed
// part:
//
//	12  R_Key to invalidate 4   SEND with invalidate, local invalidate
//	16  remote address      8   RDMA, atomics; bind: start of the window; fast registration: base of the region
//	24  R_Key               4   RDMA, atomics: the peer's; bind, fast registration: the new one
//
//	32  atomics: compare or add 8, swap 8; one SGE follows
//	32  bind: length 8, the region's lkey 4, access flags 4
//	32  fast registration: length 8, access flags 4, entries of the region's list 4 (RegEntry)
//
// For an XRC initiator (QPTypeXRCSend) the number of the peer's SRQ precedes the data after the fixed part, which
// begins 16 bytes later:
//
//	32  remote SRQ number 4, reserved 12
const (
	sendRemoteAddr = 16
	sendRKey       = 24

	sendRemoteSRQN = sendHeader
	xrcLen         = 16
	xrcHeader      = sendHeader + xrcLen

	// AtomicLen is the length of Atomic in a slot, in bytes.
	AtomicLen = 16
	// BindLen is the length of Bind in a slot, in bytes.
	BindLen = 16
	// connectedData is the minimum space for data in a connected queue pair's slot, in bytes: an atomic and its SGE.
	connectedData = AtomicLen + SGELen
)

// SendConnected is the fixed part of a send work request of a connected queue pair, copied from its slot.
type SendConnected struct {
	ID         uint64
	Opcode     ib.Opcode
	Flags      ib.SendFlags
	SGECount   uint16
	Imm        uint32  // immediate data, or the R_Key to invalidate
	RemoteAddr uint64  // RDMA, atomics: address of the peer's memory; bind: start of the window; see above
	RKey       ib.RKey // RDMA, atomics: key of the peer's memory; bind, fast registration: the new key
	InlineLen  uint32
	RemoteSRQN wire.SRQN // XRC initiator: number of the peer's SRQ
}

// InvalidateRKey returns the key to invalidate, which is stored in the field of the immediate data.
func (s *SendConnected) InvalidateRKey() ib.RKey { return ib.RKey(s.Imm) }

// PutConnected is Put for a connected queue pair's request.
func (q *SendProducer) PutConnected(s *SendConnected) []byte {
	slot := q.at(q.next)
	q.next++
	_ = slot[sendHeader-1]
	binary.LittleEndian.PutUint64(slot[sendID:], s.ID)
	binary.LittleEndian.PutUint64(slot[sendOpcode:], sendHead(s.Opcode, s.Flags, s.SGECount, s.Imm))
	binary.LittleEndian.PutUint64(slot[sendRemoteAddr:], s.RemoteAddr)
	binary.LittleEndian.PutUint64(slot[sendRKey:], uint64(s.RKey)|uint64(s.InlineLen)<<32)
	if q.header == xrcHeader {
		binary.LittleEndian.PutUint64(slot[sendRemoteSRQN:], uint64(s.RemoteSRQN))
		clear(slot[sendRemoteSRQN+8 : xrcHeader])
	}
	return slot[q.header:]
}

// GetConnected is Get for a connected queue pair. It copies the request after the next n requests.
func (q *SendConsumer) GetConnected(n uint32, s *SendConnected) (data []byte) {
	slot := q.at(q.next + n)
	_ = slot[sendHeader-1]
	s.ID = binary.LittleEndian.Uint64(slot[sendID:])
	head := binary.LittleEndian.Uint64(slot[sendOpcode:])
	s.Opcode, s.Flags, s.SGECount, s.Imm = ib.Opcode(head), ib.SendFlags(head>>8), uint16(head>>16), uint32(head>>32)
	s.RemoteAddr = binary.LittleEndian.Uint64(slot[sendRemoteAddr:])
	rest := binary.LittleEndian.Uint64(slot[sendRKey:])
	s.RKey, s.InlineLen = ib.RKey(rest), uint32(rest>>32)
	if q.header == xrcHeader {
		s.RemoteSRQN = wire.SRQN(binary.LittleEndian.Uint32(slot[sendRemoteSRQN:]))
	}
	return slot[q.header:]
}

// ConnectedGeometry is SendGeometry for a connected queue pair, whose slots have at least room for an atomic.
func ConnectedGeometry(entries, maxSGE, maxInline uint32) Geometry {
	return SendGeometry(entries, max(maxSGE, connectedData/SGELen), maxInline)
}

// XRCGeometry is ConnectedGeometry for an XRC initiator, whose slots also contain the number of an SRQ.
func XRCGeometry(entries, maxSGE, maxInline uint32) Geometry {
	return ConnectedGeometry(entries, max(maxSGE, connectedData/SGELen)+xrcLen/SGELen, maxInline+xrcLen)
}

// XRCRoom is SendRoom for an XRC initiator's slot.
func (g Geometry) XRCRoom() (maxSGE, maxInline uint32) {
	return Geometry{Stride: g.Stride - xrcLen}.SendRoom()
}

// NewXRCSendProducer is NewSendProducer for an XRC initiator's queue.
func NewXRCSendProducer(memory []byte, g Geometry) (*SendProducer, error) {
	return newSendProducer(memory, g, xrcHeader)
}

// NewXRCSendConsumer is NewSendConsumer for an XRC initiator's queue.
func NewXRCSendConsumer(memory []byte, g Geometry) (*SendConsumer, error) {
	return newSendConsumer(memory, g, xrcHeader)
}

// Atomic holds the operands of compare-and-swap, or the addend of fetch-and-add.
type Atomic struct{ CompareAdd, Swap uint64 }

// PutAtomic writes operands at the start of b.
func PutAtomic(b []byte, a Atomic) {
	_ = b[AtomicLen-1]
	binary.LittleEndian.PutUint64(b, a.CompareAdd)
	binary.LittleEndian.PutUint64(b[8:], a.Swap)
}

// GetAtomic reads the operands at the start of b.
func GetAtomic(b []byte) Atomic {
	_ = b[AtomicLen-1]
	return Atomic{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// Bind describes the part of a region to which a window is bound. Length 0 unbinds a window of type 1.
type Bind struct {
	Length uint64 // length of the window, in bytes
	LKey   ib.LKey
	Access ib.AccessFlags
}

// PutBind writes w at the start of b.
func PutBind(b []byte, w Bind) {
	_ = b[BindLen-1]
	binary.LittleEndian.PutUint64(b, w.Length)
	binary.LittleEndian.PutUint64(b[8:], uint64(w.LKey)|uint64(w.Access)<<32)
}

// GetBind reads the Bind at the start of b.
func GetBind(b []byte) Bind {
	_ = b[BindLen-1]
	rest := binary.LittleEndian.Uint64(b[8:])
	return Bind{binary.LittleEndian.Uint64(b), ib.LKey(rest), ib.AccessFlags(rest >> 32)}
}
