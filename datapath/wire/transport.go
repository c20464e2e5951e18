package wire

import "encoding/binary"

// Transport holds the transport headers of a packet of a connected queue pair. Fields after Packets are used only if
// the opcode has their header.
type Transport struct {
	Opcode           Opcode
	DestQP, SourceQP QPN // the source is not in the packet; the UDP source port is derived from both
	PSN              PSN
	PKey             PKey
	ID               uint16 // IPv4 identification
	Solicited        bool
	AckReq           bool
	Packets          uint32 // number of packets that it stands for, at most MaxPackets; 0 means 1

	SRQN             SRQN   // XRCETH
	Addr             uint64 // RETH, AtomicETH
	RKey             uint32 // RETH, AtomicETH; IETH: the key to invalidate
	Length           uint32 // RETH
	SwapAdd, Compare uint64 // AtomicETH
	Syndrome         Syndrome
	MSN              uint32 // AETH, 24 bits
	Original         uint64 // AtomicAckETH
	Imm              uint32
}

// MaxPackets is the maximum number of packets that a long packet stands for.
const MaxPackets = bthPacketsMask + 1

// PayloadOffsetOf returns the offset of the payload in a frame with an existing opcode, in bytes.
func (t *Template) PayloadOffsetOf(o Opcode) int { return t.bth + opcodes[o].Payload }

// SealTransport is Seal for a packet of a connected queue pair, whose payload is at PayloadOffsetOf.
func (t *Template) SealTransport(frame []byte, h *Transport, length int) int {
	payload := t.PayloadOffsetOf(h.Opcode)
	frame = t.begin(frame, payload, length, h.ID, t.sourcePort(h.SourceQP, h.DestQP))
	h.put(frame[t.bth:payload:payload], length)
	return t.finish(frame)
}

// put writes BTH and extended headers, in order.
func (h *Transport) put(b []byte, length int) {
	putBTH(b, h.Opcode, h.Solicited, h.AckReq, padOf(length), h.PKey, h.DestQP, h.PSN)
	if h.Packets > 1 {
		b[bthAckReq] |= byte(h.Packets-1) & bthPacketsMask
	}
	b = b[BTHLen:]
	mask := opcodes[h.Opcode].Mask
	if mask&HeaderXRCETH != 0 {
		binary.BigEndian.PutUint32(b, uint32(h.SRQN&SRQNMax))
		b = b[XRCETHLen:]
	}
	if mask&HeaderRETH != 0 {
		binary.BigEndian.PutUint64(b[rethAddr:], h.Addr)
		binary.BigEndian.PutUint32(b[rethRKey:], h.RKey)
		binary.BigEndian.PutUint32(b[rethLength:], h.Length)
		b = b[RETHLen:]
	}
	if mask&HeaderAtomicETH != 0 {
		binary.BigEndian.PutUint64(b[atomicAddr:], h.Addr)
		binary.BigEndian.PutUint32(b[atomicRKey:], h.RKey)
		binary.BigEndian.PutUint64(b[atomicSwapAdd:], h.SwapAdd)
		binary.BigEndian.PutUint64(b[atomicCompare:], h.Compare)
	}
	if mask&HeaderAETH != 0 {
		binary.BigEndian.PutUint32(b, uint32(h.Syndrome)<<24|h.MSN&uint32(PSNMask))
		b = b[AETHLen:]
	}
	if mask&HeaderAtomicAckETH != 0 {
		binary.BigEndian.PutUint64(b, h.Original)
	}
	if mask&HeaderImm != 0 {
		binary.BigEndian.PutUint32(b, h.Imm)
	}
	if mask&HeaderIETH != 0 {
		binary.BigEndian.PutUint32(b, h.RKey)
	}
}
