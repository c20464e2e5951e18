// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
)

// dice choose a side's requests at random: mostly valid, with occasional errors in each part.
type dice struct{ *side }

func (s *side) dice() dice { return dice{s} }

const rarely = 40 // once in so many

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

// target is a queue pair behind an address, a group's number, or the number of none.
func (d dice) target(at verbs.GID) verbs.QPN {
	if at.IsMulticast() {
		return verbs.MulticastQPN
	}
	for _, to := range d.sides {
		if q := one(d.side, to.qps); q != nil && to.card.own[at] && !d.chance(rarely) {
			return q.model.number // it may be closed
		}
	}
	return verbs.QPN(d.random.Uint32())&0xFFFF + 2
}

// handle is an address handle, most of the time a live one of the same PD.
func (d dice) handle(q *playedQP) *playedAH {
	for range 6 {
		if a := one(d.side, d.ahs); a != nil && a.model.pd == q.model.pd && !a.model.closed {
			return a
		}
	}
	return one(d.side, d.ahs)
}

// content gives a request its data: inline, or a list.
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
	r.sges = d.cut(q, length, int(q.model.cap.MaxSendSGE))
}

// length is that of a message: most are short.
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

// recvPieces are the memory of a receive: most have room for a short message.
func (d dice) recvPieces(pd *modelPD, most int) []verbs.SGE {
	length := grhLen + 200
	switch d.random.IntN(100) { // one that is too small holds up those behind it
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
	return d.spoilSGEs(d.lay(d.inPD(pd, list), length, most))
}

// cut lays out data that is sent, also of regions that receives write to.
func (d dice) cut(q *playedQP, length, most int) []verbs.SGE {
	var list []*playedMR
	for _, m := range d.mrs {
		if !m.closed {
			list = append(list, m)
		}
	}
	return d.spoilSGEs(d.lay(d.inPD(q.model.pd, list), length, most))
}

// inPD are the regions of a PD; now and then, or if there are none, all.
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

// lay takes a piece of a region that is long enough, and cuts it. The pieces do not overlap.
func (d dice) lay(list []*playedMR, length, most int) (sges []verbs.SGE) {
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

// spoilSGEs now and then changes a key, an address or a length, or adds a piece.
func (d dice) spoilSGEs(sges []verbs.SGE) []verbs.SGE {
	if len(sges) == 0 || !d.chance(rarely) {
		return sges
	}
	at := &sges[d.random.IntN(len(sges))]
	switch d.random.IntN(7) {
	case 0:
		at.LKey = verbs.LKey(d.random.Uint32())
	case 1:
		at.LKey, at.Length = verbs.LKey(d.random.Uint32()), 0 // no bytes need no key
	case 2:
		at.Addr = 1<<64 - 1
	case 3:
		at.Addr += 1 << 32
	case 4:
		at.LKey ^= 1 << (d.random.IntN(32))
	case 5:
		at.LKey = one(d.side, d.mrs).model.lkey // it may be closed, another PD's, or read only
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
