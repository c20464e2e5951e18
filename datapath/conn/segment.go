// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Segmentation of requests: one packet for each path MTU of the message. The opcodes mark the first and the last
// packet. On an in-memory network, a long packet stands for several consecutive packets and contains their payloads. It
// uses as many PSNs, so that both sides can continue at any of these packets. A READ is requested by one packet, or by
// several, each for a part of its response.

// packetsOf returns the number of packets of a message with a length in bytes.
func packetsOf(length uint32, mtu wire.MTU) uint32 {
	size := uint32(mtu.Bytes())
	if length <= size { // the usual case; a division is slow
		return 1
	}
	return (length + size - 1) / size
}

// together returns the number of packets, of the left remaining packets of a message, that fit into one long packet
// with a payload of at most longest bytes.
func (a *Attr) together(left uint32, longest int) uint32 {
	return max(1, min(left, uint32(longest/a.MTU.Bytes()), wire.MaxPackets))
}

// packetsIn returns the number of packets that a received packet stands for. It returns 0 if the length of the payload
// contradicts the number in the header, because the peer uses a different path MTU.
func (a *Attr) packetsIn(p *wire.Packet) uint32 {
	packets, says := packetsOf(uint32(len(p.Payload())), a.MTU), uint32(1)
	if a.Long {
		says = p.BTH().Packets()
	}
	if packets != says {
		return 0
	}
	return packets
}

// operation returns the opcode of the packet at a place in the request; the packet stands for many packets.
func (w *work) operation(place, many uint32) wire.Opcode {
	return sequences[w.Opcode].At(place, many, w.packets)
}

var readResponses = wire.SequenceOf(wire.MeansReadResponse)

// sequences holds the packet operations of each request type that has packets.
var sequences = func() (all [1 << 8]wire.Sequence) {
	for i := range all {
		if means := ib.Opcode(i).Means(); means != 0 {
			all[i] = wire.SequenceOf(means)
		}
	}
	return all
}()

// describe sets the header fields that depend on the request, and returns the payload length, in bytes.
func (w *work) describe(mtu uint32, h *wire.Transport, place uint32) (length int) {
	h.Solicited = w.Flags&ib.SendSolicited != 0 && place+h.Packets == w.packets
	h.Addr, h.RKey, h.Length, h.Imm, h.SRQN = w.RemoteAddr, uint32(w.RKey), w.length, w.Imm, w.RemoteSRQN
	switch w.Opcode {
	case ib.WRSendWithInv:
		h.RKey = uint32(w.InvalidateRKey())
	case ib.WRRDMARead: // requests the rest of a part from place on
		h.Addr += uint64(place * mtu)
		h.Length = min(w.length-place*mtu, w.partLeft(place)*mtu)
		return 0
	case ib.WRAtomicCmpAndSwp:
		h.SwapAdd, h.Compare = w.operands.Swap, w.operands.CompareAdd
		return 0
	case ib.WRAtomicFetchAndAdd:
		h.SwapAdd = w.operands.CompareAdd
		return 0
	}
	return int(min(w.length-place*mtu, h.Packets*mtu))
}
