// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
)

// modelPacket is a datagram.
type modelPacket struct {
	from    *modelQP
	route   verbs.GlobalRoute
	source  verbs.GID
	qpn     verbs.QPN
	qkey    verbs.QKey
	imm     *uint32
	payload payload
}

// payload is the data of a datagram.
type payload struct {
	bytes   []byte
	unknown []bool // see modelMR
}

// carryOut executes a request. A local error completes it, and stops the send queue (SQE):
// later requests are flushed. Of several errors the first in this order counts: the address handle,
// memory, length.
func (q *modelQP) carryOut(r *modelSend) {
	data, status := q.gather(r)
	if status == verbs.WCSuccess {
		q.card.send(q.packet(r, data))
		q.psn = (q.psn + 1) & 0xFFFFFF
	}
	q.completeSend(r, status)
	if status != verbs.WCSuccess && q.state != verbs.QPStateErr { // an overrun may have failed it
		q.state = verbs.QPStateSQE
	}
}

// gather is a request's payload.
func (q *modelQP) gather(r *modelSend) (data payload, status verbs.WCStatus) {
	if r.ah.closed {
		return data, verbs.WCLocQPOpErr
	}
	data = payload{r.inline, make([]bool, len(r.inline))}
	if r.flags&verbs.SendInline == 0 {
		pieces, ok := q.card.pieces(q.pd, r.sges, false)
		if !ok {
			return data, verbs.WCLocProtErr
		}
		for _, piece := range pieces {
			data.bytes, data.unknown = append(data.bytes, piece.bytes()...), append(data.unknown, piece.unknown()...)
		}
	}
	if len(data.bytes) > q.card.world.mtu {
		return data, verbs.WCLocLenErr
	}
	return data, verbs.WCSuccess
}

func (q *modelQP) packet(r *modelSend, data payload) *modelPacket {
	p := &modelPacket{from: q, route: r.ah.route, source: r.ah.source, qpn: r.qpn, qkey: r.qkey, payload: data}
	if r.opcode == verbs.WRSendWithImm {
		p.imm = &r.imm
	}
	if r.qkey&(1<<31) != 0 { // IBA 10.2.5: the queue pair's own is sent
		p.qkey = q.qkey
	}
	return p
}

// completeSend completes a send request: a failed one always, else if it is signaled.
func (q *modelQP) completeSend(r *modelSend, status verbs.WCStatus) {
	if status == verbs.WCSuccess && !q.sigAll && r.flags&verbs.SendSignaled == 0 {
		return
	}
	q.sendsDone++
	wc := modelWC{WC: verbs.WC{ID: r.id, Status: status, Opcode: verbs.WCSend, QPN: q.number}, qp: q, send: true}
	q.sendCQ.add(wc)
}

// send carries a packet: to members of its group on this card, and to those elsewhere; else to the
// card that has the address. A message to this card has arrived before its send completes. (The
// specification has no order between the two queues.)
func (c *modelCard) send(p *modelPacket) {
	if !p.route.DGID.IsMulticast() {
		for _, card := range c.world.cards {
			if card.own[p.route.DGID] {
				card.receive(p)
			}
		}
		return
	}
	c.receiveGroup(p)
	for _, card := range c.world.cards {
		if card != c {
			card.receiveGroup(p)
		}
	}
}
