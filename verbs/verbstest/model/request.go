package model

import (
	"github.com/roced/roced/verbs"
)

// Requests at random: most are good, and each field is bad now and then.

const rarely = 40 // once in so many

func (s *side) sendRequest(q *playedQP, alone bool) (*modelSend, verbs.SendWR) {
	s.ids++
	r := &modelSend{id: s.ids, opcode: verbs.WRSend, imm: s.random.Uint32(), qkey: s.qkey()}
	if s.chance(2) {
		r.opcode = verbs.WRSendWithImm
	}
	if !s.chance(3) {
		r.flags |= verbs.SendSignaled
	}
	r.flags |= verbs.SendFlags(s.random.IntN(2))*verbs.SendSolicited | verbs.SendFlags(s.random.IntN(2))*verbs.SendFence
	wr := verbs.SendWR{}
	if ah := s.handle(q); ah != nil {
		r.ah, wr.AH = ah.model, ah.AH
		r.qpn = s.target(ah.model.route.DGID)
	}
	s.content(q, r, alone)
	s.spoilSend(r)
	wr.ID, wr.Opcode, wr.Flags, wr.ImmData, wr.SGList, wr.InlineData = r.id, r.opcode, r.flags, r.imm, r.sges, r.data
	wr.RemoteQPN, wr.RemoteQKey = r.qpn, r.qkey
	return r, wr
}

// target is a queue pair behind an address, a group's number, or the number of none.
func (s *side) target(at verbs.GID) verbs.QPN {
	if at.IsMulticast() {
		return verbs.MulticastQPN
	}
	for _, to := range s.sides {
		if q := one(s, to.qps); q != nil && to.card.own[at] && !s.chance(rarely) {
			return q.model.number // it may be closed
		}
	}
	return verbs.QPN(s.random.Uint32())&0xFFFF + 2
}

// handle is an address handle, most of the time a live one of the same PD.
func (s *side) handle(q *playedQP) *playedAH {
	for range 6 {
		if a := one(s, s.ahs); a != nil && a.model.pd == q.model.pd && !a.model.closed {
			return a
		}
	}
	return one(s, s.ahs)
}

// content gives a request its data: inline, or a list.
func (s *side) content(q *playedQP, r *modelSend, alone bool) {
	length := s.length()
	switch {
	case s.chance(6) && q.model.cap.MaxInlineData > 0:
		r.flags |= verbs.SendInline
		length = s.random.IntN(int(q.model.cap.MaxInlineData) + 1)
		if s.chance(2) {
			r.data = make([]byte, length)
			for i := range r.data {
				r.data[i] = byte(s.random.Uint32())
			}
			return
		}
		r.sges = s.cut(q, length, int(q.model.cap.MaxSendSGE), true)
	default:
		// What has been received together with this request may not be known to the model yet.
		known := alone && q.model.state == verbs.QPStateRTS && len(q.model.sends) == 0
		r.sges = s.cut(q, length, int(q.model.cap.MaxSendSGE), known)
	}
}

// length is that of a message: most are short.
func (s *side) length() int {
	switch s.random.IntN(20) {
	case 0:
		return s.world.mtu - s.random.IntN(2)
	case 1:
		return s.world.mtu + 1
	case 2, 3, 4:
		return 0
	}
	return s.random.IntN(200)
}

// recvPieces are the memory of a receive: most have room for a short message.
func (s *side) recvPieces(pd *modelPD, most int) []verbs.SGE {
	length := grhLen + 200
	switch s.random.IntN(100) { // one that is too small holds up those behind it
	case 0:
		length = s.random.IntN(grhLen + 10)
	case 1, 2, 3:
		length = grhLen + s.random.IntN(200)
	case 4, 5, 6, 7, 8, 9, 10, 11, 12, 13:
		length = grhLen + s.world.mtu
	}
	var list []*playedMR
	for _, m := range s.mrs {
		if m.model.write && !m.closed {
			list = append(list, m)
		}
	}
	return s.spoilSGEs(s.lay(s.inPD(pd, list), length, most))
}

// cut lays out data that is sent. Regions that receives write to are among it if any is true.
func (s *side) cut(q *playedQP, length, most int, any bool) []verbs.SGE {
	var list []*playedMR
	for _, m := range s.mrs {
		if (any || !m.model.write) && !m.closed {
			list = append(list, m)
		}
	}
	return s.spoilSGEs(s.lay(s.inPD(q.model.pd, list), length, most))
}

// inPD are the regions of a PD; now and then, or if there are none, all.
func (s *side) inPD(pd *modelPD, list []*playedMR) (own []*playedMR) {
	for _, m := range list {
		if m.model.pd == pd {
			own = append(own, m)
		}
	}
	if len(own) == 0 || s.chance(rarely) {
		return list
	}
	return own
}

// lay takes a piece of a region that is long enough, and cuts it. The pieces do not overlap.
func (s *side) lay(list []*playedMR, length, most int) (sges []verbs.SGE) {
	m := one(s, list)
	for range 3 {
		if m != nil && len(m.model.memory) < length {
			m = one(s, list)
		}
	}
	if m == nil || most == 0 {
		return nil
	}
	from := s.random.IntN(max(len(m.model.memory)-length, 0) + 1)
	for count := 1 + s.random.IntN(most); count > 0; count-- {
		n := length
		if count > 1 {
			n = s.random.IntN(length + 1)
		}
		sges = append(sges, m.SGE(from, n))
		from, length = from+n, length-n
	}
	return sges
}

// spoilSGEs now and then changes a key, an address or a length, or adds a piece.
func (s *side) spoilSGEs(sges []verbs.SGE) []verbs.SGE {
	if len(sges) == 0 || !s.chance(rarely) {
		return sges
	}
	at := &sges[s.random.IntN(len(sges))]
	switch s.random.IntN(7) {
	case 0:
		at.LKey = verbs.LKey(s.random.Uint32())
	case 1:
		at.LKey, at.Length = verbs.LKey(s.random.Uint32()), 0 // no bytes need no key
	case 2:
		at.Addr = 1<<64 - 1
	case 3:
		at.Addr += 1 << 32
	case 4:
		at.LKey ^= 1 << (s.random.IntN(32))
	case 5:
		at.LKey = one(s, s.mrs).model.lkey // it may be closed, another PD's, or read only
	case 6:
		return append(sges, make([]verbs.SGE, 16)...)
	}
	return sges
}

// spoilSend now and then changes a field to what is refused, or does not arrive.
func (s *side) spoilSend(r *modelSend) {
	if !s.chance(rarely / 4) {
		return
	}
	switch s.random.IntN(10) {
	case 0:
		r.qpn = 0
	case 1:
		r.qpn = 1 << 24
	case 2:
		r.opcode = verbs.Opcode(s.random.IntN(12))
	case 3:
		r.flags |= 1 << (4 + s.random.IntN(4))
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
