// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Datagram holds the header fields that differ between UD packets to one destination.
type Datagram struct {
	DestQP, SourceQP QPN
	QKey             QKey
	PSN              PSN
	PKey             PKey
	ID               uint16 // IPv4 identification
	Solicited        bool
	HasImm           bool
	Imm              uint32
}

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

// MaxHeaders is the maximum length of the headers before a payload, in bytes.
const MaxHeaders = EthernetLen + VLANLen + IPv6Len + UDPLen + BTHLen + XRCETHLen + AtomicETHLen

// MaxTrailer is the maximum length of the pad and the ICRC after the payload, in bytes.
const MaxTrailer = 3 + ICRCLen

// PayloadOffset returns the offset of the payload in the frame, in bytes.
func (t *Template) PayloadOffset(hasImm bool) int {
	offset := t.bth + BTHLen + DETHLen
	if hasImm {
		offset += ImmLen
	}
	return offset
}

// PayloadOffsetOf returns the offset of the payload in a frame with a defined opcode, in bytes.
func (t *Template) PayloadOffsetOf(o Opcode) int { return t.bth + opcodes[o].Payload }

// Seal writes headers, pad and ICRC around a payload of length bytes, which is already at PayloadOffset, and returns
// the length of the frame. The frame must have room for MaxTrailer bytes after the payload.
func (t *Template) Seal(frame []byte, d *Datagram, length int) int {
	payload := t.PayloadOffset(d.HasImm)
	frame = t.begin(frame, payload, length, d.ID, t.sourcePort(d.SourceQP, d.DestQP))
	d.put(frame[t.bth:payload], length)
	return t.finish(frame)
}

// SealTransport is Seal for a packet of a connected queue pair, whose payload is at PayloadOffsetOf.
func (t *Template) SealTransport(frame []byte, h *Transport, length int) int {
	payload := t.PayloadOffsetOf(h.Opcode)
	frame = t.begin(frame, payload, length, h.ID, t.sourcePort(h.SourceQP, h.DestQP))
	h.put(frame[t.bth:payload:payload], length)
	return t.finish(frame)
}

// begin writes the headers before the BTH, and the pad. It returns the frame with its final length.
func (t *Template) begin(frame []byte, payload, length int, id, port uint16) []byte {
	end := payload + length + padOf(length)
	frame = frame[:end+ICRCLen]
	clear(frame[payload+length : end])
	t.copyHeaders(frame)
	t.putLengths(frame, id, port, len(frame))
	return frame
}

// finish writes the ICRC, or the marker that replaces it, and returns the length of the frame.
func (t *Template) finish(frame []byte) int {
	end := len(frame) - ICRCLen
	sum := uint32(unsealed)
	if !t.unsealed {
		sum = icrc(frame[t.ip:end])
	}
	binary.LittleEndian.PutUint32(frame[end:], sum)
	t.unmask(frame)
	return len(frame)
}

// padOf returns the number of pad bytes after a payload, which extend its length to a multiple of four.
func padOf(length int) int { return -length & 3 }

// copyHeaders copies the Ethernet, IP and UDP headers. It always copies the length of the headers with a VLAN tag,
// because a copy of constant length is faster. Without a tag, the BTH overwrites the excess bytes.
func (t *Template) copyHeaders(frame []byte) {
	const v4, v6 = EthernetLen + VLANLen + IPv4Len + UDPLen, EthernetLen + VLANLen + IPv6Len + UDPLen
	if t.v6 {
		*(*[v6]byte)(frame) = [v6]byte(t.headers[:])
	} else {
		*(*[v4]byte)(frame) = [v4]byte(t.headers[:])
	}
}

// putLengths writes the fields of IP and UDP that differ between packets and that the ICRC covers: lengths,
// identification and source port.
func (t *Template) putLengths(frame []byte, id, port uint16, total int) {
	ip := frame[t.ip:t.bth]
	if t.v6 {
		binary.BigEndian.PutUint16(ip[ipv6PayloadLength:], uint16(total-t.ip-IPv6Len))
	} else {
		binary.BigEndian.PutUint16(ip[ipv4TotalLength:], uint16(total-t.ip))
		binary.BigEndian.PutUint16(ip[ipv4Identification:], id)
	}
	udp := ip[len(ip)-UDPLen:]
	binary.BigEndian.PutUint16(udp[udpSource:], port)
	binary.BigEndian.PutUint16(udp[udpLength:], uint16(total-t.bth+UDPLen))
}

func (t *Template) sourcePort(local, remote QPN) uint16 {
	label := t.flowLabel
	if label == 0 {
		label = FlowLabel(local, remote)
	}
	port := SourcePort(label)
	if t.ports[0] != 0 {
		port = t.ports[int(port)%len(t.ports)]
	}
	return port
}

// put writes BTH, DETH and immediate data.
func (d *Datagram) put(b []byte, length int) {
	opcode := OpcodeUDSend
	if d.HasImm {
		opcode = OpcodeUDSendImmediate
		binary.BigEndian.PutUint32(b[BTHLen+DETHLen:], d.Imm)
	}
	putBTH(b, opcode, d.Solicited, false, padOf(length), d.PKey, d.DestQP, d.PSN)
	binary.BigEndian.PutUint64(b[BTHLen:], uint64(d.QKey)<<32|uint64(d.SourceQP&QPNMax))
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

// putBTH writes the BTH, with its FECN byte masked for the ICRC.
func putBTH(b []byte, opcode Opcode, solicited, ackReq bool, pad int, pkey PKey, dest QPN, psn PSN) {
	flags, last := uint64(bthMigReq|pad<<bthPadShift), uint32(psn&PSNMask)
	if solicited {
		flags |= bthSolicited
	}
	if ackReq {
		last |= bthAckRequested << 24
	}
	_ = b[BTHLen-1]
	binary.BigEndian.PutUint64(b, uint64(opcode)<<56|flags<<48|uint64(pkey)<<32|0xFF<<24|uint64(dest&QPNMax))
	binary.BigEndian.PutUint32(b[bthAckReq:], last)
}

// HeaderLen returns the length of the headers before the BTH, in bytes.
func (t *Template) HeaderLen() int { return t.bth }

// PutHeaders writes the headers before the BTH of a frame whose other parts were received by a UDP socket. The UDP
// checksum is 0.
func (t *Template) PutHeaders(frame []byte, id, sourcePort uint16) {
	copy(frame[:t.bth], t.headers[:])
	t.putLengths(frame, id, sourcePort, len(frame))
	t.unmaskHeaders(frame[t.ip:t.bth])
}

// unmask writes the actual values of the fields that were ones for the ICRC.
func (t *Template) unmask(frame []byte) {
	t.unmaskHeaders(frame[t.ip:t.bth])
	frame[t.bth+bthFECN] = 0
}

// unmaskHeaders is unmask for the IP and UDP headers.
func (t *Template) unmaskHeaders(ip []byte) {
	if t.v6 {
		length := uint64(binary.BigEndian.Uint16(ip[ipv6PayloadLength:]))
		binary.BigEndian.PutUint64(ip, t.first|length<<16)
	} else {
		sum := t.partial + uint64(binary.BigEndian.Uint16(ip[ipv4TotalLength:])) + uint64(binary.BigEndian.Uint16(ip[ipv4Identification:]))
		ip[ipv4TOS], ip[ipv4TTL] = t.tos, t.ttl
		binary.BigEndian.PutUint16(ip[ipv4Checksum:], ^fold(sum))
	}
	ip[len(ip)-UDPLen+udpChecksum], ip[len(ip)-UDPLen+udpChecksum+1] = 0, 0
}

// FlowLabel derives a flow label of 20 bits from the two queue pairs of a flow, for paths without a flow label
// (rdma_calc_flow_label in the kernel).
func FlowLabel(local, remote QPN) uint32 {
	v := uint64(local) * uint64(remote)
	v ^= v >> 20
	v ^= v >> 40
	return uint32(v & flowLabelMask)
}

// SourcePort derives the UDP source port from a flow label, so that routers distribute flows over parallel links
// (rdma_flow_label_to_udp_sport in the kernel).
func SourcePort(flowLabel uint32) uint16 {
	low, high := flowLabel&0x3FFF, flowLabel&0xFC000>>14
	return uint16(low^high) | 0xC000
}
