// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
)

// dice chooses a side's requests at random: mostly valid, with occasional errors in each part.
type dice struct{ *side }

func (s *side) dice() dice { return dice{s} }

const rarely = 40 // argument of chance for rare choices

func (d dice) sendRequest(q *playedQP) (*modelSend, verbs.SendWR) {
	d.ids++
	r := &modelSend{id: d.ids, opcode: verbs.WRSend, imm: d.random.Uint32(), qkey: d.qkey()}
	if d.chance(2) {
		r.opcode = verbs.WRSendWithImm
	}
	if !d.chance(3) {
		r.flags |= verbs.SendSignaled
	}
	r.flags |= verbs.SendFlags(d.random.IntN(2))*verbs.SendSolicited | verbs.SendFlags(d.random.IntN(2))*verbs.SendFence
	wr := verbs.SendWR{}
	if ah := d.handle(q); ah != nil {
		r.ah, wr.AH = ah.model, ah.AH
		r.qpn = d.target(ah.model.route.DGID)
	}
	d.content(q, r)
	d.spoilSend(r)
	wr.ID, wr.Opcode, wr.Flags, wr.ImmData, wr.SGList, wr.InlineData = r.id, r.opcode, r.flags, r.imm, r.sges, r.data
	wr.RemoteQPN, wr.RemoteQKey = r.qpn, r.qkey
	return r, wr
}

// target returns the number of a queue pair with this address, the multicast number for a group, or rarely an unused
// number.
func (d dice) target(at verbs.GID) verbs.QPN {
	if at.IsMulticast() {
		return verbs.MulticastQPN
	}
	for _, to := range d.sides {
		if q := one(d.side, to.qps); q != nil && to.card.own[at] && !d.chance(rarely) {
			return q.model.number // the queue pair may be closed
		}
	}
	return verbs.QPN(d.random.Uint32())&0xFFFF + 2
}

// handle returns an address handle, mostly an open one of the same PD.
func (d dice) handle(q *playedQP) *playedAH {
	for range 6 {
		if a := one(d.side, d.ahs); a != nil && a.model.pd == q.model.pd && !a.model.closed {
			return a
		}
	}
	return one(d.side, d.ahs)
}

// content sets the data of a request: inline data or an SGE list.
func (d dice) content(q *playedQP, r *modelSend) {
	length := d.length()
	if d.chance(6) && q.model.cap.MaxInlineData > 0 {
		r.flags |= verbs.SendInline
		length = d.random.IntN(int(q.model.cap.MaxInlineData) + 1)
		if d.chance(2) {
			r.data = make([]byte, length)
			for i := range r.data {
				r.data[i] = byte(d.random.Uint32())
			}
			return
		}
	}
	r.sges = d.sendPieces(q, length, int(q.model.cap.MaxSendSGE))
}

// length returns the length of a message. Most are short.
func (d dice) length() int {
	switch d.random.IntN(20) {
	case 0:
		return d.world.mtu - d.random.IntN(2)
	case 1:
		return d.world.mtu + 1
	case 2, 3, 4:
		return 0
	}
	return d.random.IntN(200)
}

// recvPieces returns the SGEs of a receive. Most are large enough for a short message.
func (d dice) recvPieces(pd *modelPD, most int) []verbs.SGE {
	length := grhLen + 200
	switch d.random.IntN(100) { // a receive that is too small blocks the later ones
	case 0:
		length = d.random.IntN(grhLen + 10)
	case 1, 2, 3:
		length = grhLen + d.random.IntN(200)
	case 4, 5, 6, 7, 8, 9, 10, 11, 12, 13:
		length = grhLen + d.world.mtu
	}
	var list []*playedMR
	for _, m := range d.mrs {
		if m.model.write && !m.closed {
			list = append(list, m)
		}
	}
	return d.spoilSGEs(d.split(d.inPD(pd, list), length, most))
}

// sendPieces returns the SGEs of a send, also in regions that receives write to.
func (d dice) sendPieces(q *playedQP, length, most int) []verbs.SGE {
	var list []*playedMR
	for _, m := range d.mrs {
		if !m.closed {
			list = append(list, m)
		}
	}
	return d.spoilSGEs(d.split(d.inPD(q.model.pd, list), length, most))
}

// inPD returns the regions of a PD. It returns all regions if the PD has none, and rarely otherwise.
func (d dice) inPD(pd *modelPD, list []*playedMR) (own []*playedMR) {
	for _, m := range list {
		if m.model.pd == pd {
			own = append(own, m)
		}
	}
	if len(own) == 0 || d.chance(rarely) {
		return list
	}
	return own
}

// split chooses a part of a region and divides it into at most most SGEs, which do not overlap.
func (d dice) split(list []*playedMR, length, most int) (sges []verbs.SGE) {
	m := one(d.side, list)
	for range 3 {
		if m != nil && len(m.model.memory) < length {
			m = one(d.side, list)
		}
	}
	if m == nil || most == 0 {
		return nil
	}
	from := d.random.IntN(max(len(m.model.memory)-length, 0) + 1)
	for count := 1 + d.random.IntN(most); count > 0; count-- {
		n := length
		if count > 1 {
			n = d.random.IntN(length + 1)
		}
		sges = append(sges, m.SGE(from, n))
		from, length = from+n, length-n
	}
	return sges
}

// spoilSGEs rarely changes a key, an address or a length, or appends SGEs.
func (d dice) spoilSGEs(sges []verbs.SGE) []verbs.SGE {
	if len(sges) == 0 || !d.chance(rarely) {
		return sges
	}
	at := &sges[d.random.IntN(len(sges))]
	switch d.random.IntN(7) {
	case 0:
		at.LKey = verbs.LKey(d.random.Uint32())
	case 1:
		at.LKey, at.Length = verbs.LKey(d.random.Uint32()), 0 // an empty SGE needs no valid key
	case 2:
		at.Addr = 1<<64 - 1
	case 3:
		at.Addr += 1 << 32
	case 4:
		at.LKey ^= 1 << (d.random.IntN(32))
	case 5:
		at.LKey = one(d.side, d.mrs).model.lkey // the region may be closed, read-only or of another PD
	case 6:
		return append(sges, make([]verbs.SGE, 16)...)
	}
	return sges
}

// spoilSend occasionally changes a field so that the request is refused, or the message does not arrive.
func (d dice) spoilSend(r *modelSend) {
	if !d.chance(rarely / 4) {
		return
	}
	switch d.random.IntN(10) {
	case 0:
		r.qpn = 0
	case 1:
		r.qpn = 1 << 24
	case 2:
		r.opcode = verbs.Opcode(d.random.IntN(12))
	case 3:
		r.flags |= 1 << (4 + d.random.IntN(4))
	case 4:
		r.flags &^= verbs.SendInline
	case 5:
		r.flags |= verbs.SendInline
	case 6:
		r.data = make([]byte, 2000)
	case 7:
		r.qkey |= 1 << 31
	case 8:
		r.qkey++
	case 9:
		r.qpn = verbs.MulticastQPN
	}
}
