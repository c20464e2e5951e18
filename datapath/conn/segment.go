package conn

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// How a request of a connected queue pair becomes packets: as many as path MTUs fit its message, the first
// and the last of which say what it is. Where frames never leave memory, one packet may stand for several that follow
// each other, and has their payloads: a long packet. It has their PSNs too, so that either side may go on between them.
// A READ is asked for by one packet, or by several, each for a part of its response.

// packetsOf is how many packets a message of a length is.
func packetsOf(length uint32, mtu wire.MTU) uint32 {
	size := uint32(mtu.Bytes())
	if length <= size { // most; to divide takes long
		return 1
	}
	return (length + size - 1) / size
}

// together is how many of the packets that are left of a message go into one whose payload may be so long, in bytes.
func (a *Attr) together(left uint32, longest int) uint32 {
	return max(1, min(left, uint32(longest/a.MTU.Bytes()), wire.MaxPackets))
}

// packetsIn is how many packets one with a part of a message stands for; 0 if its payload is not as long as that may be:
// the peer has another path MTU.
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

// operation is that of a packet at a place in the request that stands for so many.
func (w *work) operation(place, many uint32) wire.Opcode {
	return sequences[w.Opcode].At(place, many, w.packets)
}

var readResponses = wire.SequenceOf(wire.MeansReadResponse)

// sequences are the operations of the packets of each request that has packets.
var sequences = func() (all [1 << 8]wire.Sequence) {
	for i := range all {
		if means := ib.Opcode(i).Means(); means != 0 {
			all[i] = wire.SequenceOf(means)
		}
	}
	return all
}()

// describe fills in what the headers say of the request, and returns the packet's length, in bytes.
func (w *work) describe(mtu uint32, h *wire.Transport, place uint32) (length int) {
	h.Solicited = w.Flags&ib.SendSolicited != 0 && place+h.Packets == w.packets
	h.Addr, h.RKey, h.Length, h.Imm, h.SRQN = w.RemoteAddr, uint32(w.RKey), w.length, w.Imm, w.RemoteSRQN
	switch w.Opcode {
	case ib.WRSendWithInv:
		h.RKey = uint32(w.InvalidateRKey())
	case ib.WRRDMARead: // what is not here yet of a part
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
