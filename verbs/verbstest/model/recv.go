// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
)

// modelArrival is a message in the memory of a receive request.
type modelArrival struct {
	card   *modelCard
	packet *modelPacket
	pieces []modelPiece // memory of the request; the first 40 bytes contain the GRH
	length int          // including the GRH
}

// receive delivers a packet to a queue pair. A packet to an unknown queue pair is lost.
func (c *modelCard) receive(p *modelPacket) {
	if q := c.qps[p.qpn]; q != nil {
		q.receive(p)
	}
}

// receiveGroup delivers a packet to the members of its group in the order of attachment (the specification defines
// none). The destination QP of packets to groups is 0xFFFFFF.
func (c *modelCard) receiveGroup(p *modelPacket) {
	group := c.groups[p.route.DGID]
	if group == nil || p.qpn != verbs.MulticastQPN {
		return
	}
	for _, q := range group.members {
		if q == p.from && q.block {
			c.drops["self_loopback"]++
		} else {
			q.receive(p)
		}
	}
}

// receive stores a packet if the queue pair can receive, the Q_Key matches, and the next receive is large enough.
// Otherwise it drops the packet without another effect.
func (q *modelQP) receive(p *modelPacket) {
	drops := q.card.drops
	switch {
	case q.state < verbs.QPStateRTR || q.state == verbs.QPStateErr:
		drops["qp_state"]++
	case p.qkey != q.qkey:
		drops["qkey"]++
	case q.nextRecv() == nil:
		drops["no_receive"]++
	case lengthOf(q.nextRecv().sges) < grhLen+len(p.payload.bytes):
		drops["no_room"]++
	default:
		q.store(p, q.dequeueRecv())
	}
}

// store writes a packet to the memory of a receive. If the memory is not accessible, the request fails and the queue
// pair changes to ERR.
func (q *modelQP) store(p *modelPacket, r *modelRecv) {
	pd := q.pd
	if q.srq != nil {
		pd = q.srq.pd
	}
	pieces, ok := q.card.pieces(pd, r.sges, true)
	if !ok {
		q.card.drops["protection"]++
		q.completeRecv(modelWC{WC: verbs.WC{ID: r.id, Status: verbs.WCLocProtErr}})
		q.fail(false)
		return
	}
	scatterModel(pieces, p.payload)
	length := grhLen + len(p.payload.bytes)
	q.card.world.arrivals = append(q.card.world.arrivals, modelArrival{q.card, p, pieces, length})
	if !q.completeRecv(q.received(p, r)) {
		q.card.drops["cq_full"]++
	}
}

// scatterModel writes a payload to memory after the 40 bytes of the GRH, which the model does not know.
func scatterModel(pieces []modelPiece, data payload) {
	grh := grhLen
	for _, piece := range pieces {
		into, unknown := piece.bytes(), piece.unknown()
		n := min(grh, len(into))
		for i := range n {
			unknown[i] = true
		}
		grh -= n
		copy(unknown[n:], data.unknown)
		copied := copy(into[n:], data.bytes)
		data = payload{data.bytes[copied:], data.unknown[copied:]}
	}
}

// received returns the completion of a message.
func (q *modelQP) received(p *modelPacket, r *modelRecv) modelWC {
	wc := verbs.WC{
		ID: r.id, Opcode: verbs.WCRecv, ByteLen: uint32(grhLen + len(p.payload.bytes)), SrcQP: p.from.number,
		Flags: verbs.WCGRH | verbs.WCWithSMAC | verbs.WCWithNetworkHdrType,
		SMAC:  p.from.card.mac, NetworkHeader: verbs.NetworkIPv6, Port: 1,
	}
	if p.route.DGID.IsIPv4() {
		wc.NetworkHeader = verbs.NetworkIPv4
	}
	if p.imm != nil {
		wc.Flags |= verbs.WCWithImm
		wc.ImmData = *p.imm
	}
	return modelWC{WC: wc}
}

// completeRecv completes a receive request, and returns false if the CQ is overrun.
func (q *modelQP) completeRecv(wc modelWC) bool {
	q.recvsDone++
	wc.qp, wc.QPN = q, q.number
	return q.recvCQ.add(wc)
}

// fail moves a queue pair to ERR, except from RESET. With fatal it queues an event, for errors that no completion
// reports.
func (q *modelQP) fail(fatal bool) {
	if q.state == verbs.QPStateErr || q.state == verbs.QPStateReset {
		return
	}
	q.toErr()
	if fatal {
		q.card.events[modelEvent{kind: verbs.EventQPFatal, qp: q}] = true
	}
	q.card.world.failed = append(q.card.world.failed, q)
}
