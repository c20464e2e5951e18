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

// execute executes a request. After a local error the queue pair is in SQE, and later requests are flushed. The
// completion reports the first error in this order: the address handle, memory, length.
func (q *modelQP) execute(r *modelSend) {
	data, status := q.gather(r)
	if status == verbs.WCSuccess {
		q.card.send(q.packet(r, data))
		q.psn = (q.psn + 1) & 0xFFFFFF
	}
	q.completeSend(r, status)
	if status != verbs.WCSuccess && q.state != verbs.QPStateErr { // an overrun may have failed the queue pair
		q.state = verbs.QPStateSQE
	}
}

// gather returns the payload of a request.
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
	if r.qkey&(1<<31) != 0 { // the packet has the queue pair's Q_Key (IBA 10.2.5)
		p.qkey = q.qkey
	}
	return p
}

// completeSend completes a send request if it failed or is signaled.
func (q *modelQP) completeSend(r *modelSend, status verbs.WCStatus) {
	if status == verbs.WCSuccess && !q.sigAll && r.flags&verbs.SendSignaled == 0 {
		return
	}
	q.sendsDone++
	wc := modelWC{WC: verbs.WC{ID: r.id, Status: status, Opcode: verbs.WCSend, QPN: q.number}, qp: q, send: true}
	q.sendCQ.add(wc)
}

// send delivers a packet to the card with the destination address, or to the group's members on all cards. A message to
// the same card arrives before its send completes (the specification defines no order of the two queues).
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
