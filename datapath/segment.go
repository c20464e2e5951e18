package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// How a request of a connected queue pair becomes packets: as many as path MTUs fit its message, the first
// and the last of which say what it is.

// connectedOp reports whether a service has the operation.
func connectedOp(service wire.Service, o ring.Opcode) bool {
	switch o {
	case ring.WRSend, ring.WRSendWithImm, ring.WRRDMAWrite, ring.WRRDMAWriteWithImm, ring.WRBindMW, ring.WRLocalInv:
		return true
	case ring.WRSendWithInv, ring.WRRDMARead, ring.WRAtomicCmpAndSwp, ring.WRAtomicFetchAndAdd:
		return service == wire.ServiceRC
	}
	return false
}

// packetsOf is how many packets a message of a length is.
func packetsOf(length uint32, mtu wire.MTU) uint32 {
	size := uint32(mtu.Bytes())
	return max(1, (length+size-1)/size)
}

// operation is that of the packet at a place in the request.
func (w *work) operation(place uint32) wire.Opcode {
	switch w.Opcode {
	case ring.WRRDMARead:
		return wire.OpReadRequest
	case ring.WRAtomicCmpAndSwp:
		return wire.OpCompareSwap
	case ring.WRAtomicFetchAndAdd:
		return wire.OpFetchAdd
	}
	return operations[w.Opcode].at(place, w.packets)
}

// sequence is the operations of a message's packets: that of the middle ones is the one after the first.
type sequence struct{ first, last, only wire.Opcode }

func (s sequence) at(place, packets uint32) wire.Opcode {
	first, last := place == 0, place+1 == packets
	switch {
	case first && last:
		return s.only
	case first:
		return s.first
	case last:
		return s.last
	}
	return s.first + 1
}

var readResponses = sequence{wire.OpReadResponseFirst, wire.OpReadResponseLast, wire.OpReadResponseOnly}

var operations = [...]sequence{
	ring.WRSend:             {wire.OpSendFirst, wire.OpSendLast, wire.OpSendOnly},
	ring.WRSendWithImm:      {wire.OpSendFirst, wire.OpSendLastImmediate, wire.OpSendOnlyImmediate},
	ring.WRSendWithInv:      {wire.OpSendFirst, wire.OpSendLastInvalidate, wire.OpSendOnlyInvalidate},
	ring.WRRDMAWrite:        {wire.OpWriteFirst, wire.OpWriteLast, wire.OpWriteOnly},
	ring.WRRDMAWriteWithImm: {wire.OpWriteFirst, wire.OpWriteLastImmediate, wire.OpWriteOnlyImmediate},
}

// describe fills in what the headers say of the request, and returns the packet's length, in bytes.
func (w *work) describe(c *Connection, h *wire.Transport, place uint32) (length int) {
	mtu := uint32(c.MTU.Bytes())
	h.Solicited = w.Flags&ring.SendSolicited != 0 && place == w.packets-1
	h.Addr, h.RKey, h.Length, h.Imm = w.RemoteAddr(), uint32(w.RKey()), w.length, w.Imm
	switch w.Opcode {
	case ring.WRSendWithInv:
		h.RKey = uint32(w.InvalidateRKey())
	case ring.WRRDMARead: // from the part that is not here yet
		h.Addr += uint64(place * mtu)
		h.Length -= place * mtu
		return 0
	case ring.WRAtomicCmpAndSwp:
		h.SwapAdd, h.Compare = w.operands.Swap, w.operands.CompareAdd
		return 0
	case ring.WRAtomicFetchAndAdd:
		h.SwapAdd = w.operands.CompareAdd
		return 0
	}
	return int(min(w.length-place*mtu, mtu))
}
