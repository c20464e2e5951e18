// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Segmentation of a connected queue pair's requests: one packet for each path MTU of its message. The opcodes of the
// first and last packet mark the ends. Where frames never leave memory, a long packet stands for several consecutive
// packets and contains their payloads. It also uses their PSNs, so that either side may continue between them. A READ
// is requested by one packet, or by several, each for a part of its response.

// packetsOf returns the number of packets of a message of a length.
func packetsOf(length uint32, mtu wire.MTU) uint32 {
	size := uint32(mtu.Bytes())
	if length <= size { // the usual case; a division is slow
		return 1
	}
	return (length + size - 1) / size
}

// together returns how many of the remaining packets of a message fit into one long packet with a payload of longest
// bytes.
func (a *Attr) together(left uint32, longest int) uint32 {
	return max(1, min(left, uint32(longest/a.MTU.Bytes()), wire.MaxPackets))
}

// packetsIn returns the number of packets that a received packet stands for; 0 if its payload does not have that
// length, as the peer uses another path MTU.
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

// operation returns the operation of a packet at a place in the request that stands for many packets.
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

// describe fills in the header fields of the request, and returns the payload length, in bytes.
func (w *work) describe(mtu uint32, h *wire.Transport, place uint32) (length int) {
	h.Solicited = w.Flags&ib.SendSolicited != 0 && place+h.Packets == w.packets
	h.Addr, h.RKey, h.Length, h.Imm, h.SRQN = w.RemoteAddr, uint32(w.RKey), w.length, w.Imm, w.RemoteSRQN
	switch w.Opcode {
	case ib.WRSendWithInv:
		h.RKey = uint32(w.InvalidateRKey())
	case ib.WRRDMARead: // request the missing rest of a part
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
