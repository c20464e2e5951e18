// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// modelSend is a send request.
type modelSend struct {
	id     uint64
	opcode verbs.Opcode
	flags  verbs.SendFlags
	imm    uint32
	sges   []verbs.SGE
	data   []byte // inline data that the caller passes instead of sges, or nil
	ah     *modelAH
	qpn    verbs.QPN
	qkey   verbs.QKey

	inline []byte // copied data of a queued request with SendInline
}

// modelRecv is a receive request.
type modelRecv struct {
	id   uint64
	sges []verbs.SGE
}

// freeSends returns the number of free slots of the send queue. A request occupies a slot until its completion is
// polled or, if it has none, until it is executed.
func (q *modelQP) freeSends() int { return int(q.cap.MaxSendWR) - len(q.sends) - q.sendsDone }
func (q *modelQP) freeRecvs() int { return int(q.cap.MaxRecvWR) - len(q.recvs) - q.recvsDone }

// postSend queues requests up to the first invalid one, and returns its index and errno, or -1 if all are valid.
func (q *modelQP) postSend(list []*modelSend) (bad int, errno unix.Errno) {
	free := q.freeSends()
	for i, r := range list {
		if errno := q.refuseSend(r, free); errno != 0 {
			return i, errno
		}
		if r.flags&verbs.SendInline != 0 {
			r.inline, _ = q.inlineData(r)
		}
		q.sends = append(q.sends, r)
		free--
	}
	return -1, 0
}

// refuseSend returns the errno of a request that is refused when it is posted, or 0. The card detects errors in memory
// or length later (see execute), except those of inline data, which is copied now.
func (q *modelQP) refuseSend(r *modelSend, free int) unix.Errno {
	switch {
	case q.state < verbs.QPStateRTS:
		return unix.EINVAL
	case r.opcode == verbs.WRTSO, r.opcode == verbs.WRDriver1: // not supported by any queue pair
		return unix.EOPNOTSUPP
	case r.opcode != verbs.WRSend && r.opcode != verbs.WRSendWithImm,
		r.flags&^(verbs.SendFence|verbs.SendSignaled|verbs.SendSolicited|verbs.SendInline) != 0,
		r.data != nil && r.flags&verbs.SendInline == 0,
		r.ah == nil || r.ah.closed || r.ah.pd != q.pd,
		r.qpn == 0 || r.qpn > 0xFFFFFF,
		len(r.sges) > int(q.cap.MaxSendSGE):
		return unix.EINVAL
	case free == 0:
		return unix.ENOMEM
	}
	if r.flags&verbs.SendInline != 0 {
		if data, ok := q.inlineData(r); !ok || len(data) > int(q.cap.MaxInlineData) {
			return unix.EINVAL
		}
	}
	return 0
}

// inlineData copies the data of a request, and returns false if an SGE is outside all regions of the program. The
// regions' PD does not matter, since the program itself reads the data.
func (q *modelQP) inlineData(r *modelSend) (data []byte, ok bool) {
	if r.data != nil {
		return append(data, r.data...), true
	}
	for _, sge := range r.sges {
		if sge.Length == 0 {
			continue
		}
		mr := q.card.mrs[sge.LKey]
		if mr == nil || !mr.covers(sge) {
			return nil, false
		}
		data = append(data, mr.at(sge)...)
	}
	return data, true
}

// postRecv is like postSend, for the receive queue.
func (q *modelQP) postRecv(list []*modelRecv) (bad int, errno unix.Errno) {
	free := q.freeRecvs()
	for i, r := range list {
		switch {
		case q.srq != nil, q.state == verbs.QPStateReset, len(r.sges) > int(q.cap.MaxRecvSGE):
			return i, unix.EINVAL
		case free == 0:
			return i, unix.ENOMEM
		}
		q.recvs = append(q.recvs, r)
		free--
	}
	return -1, 0
}

// covers reports whether an SGE is inside the region.
func (m *modelMR) covers(sge verbs.SGE) bool {
	size, at := uint64(len(m.memory)), sge.Addr-m.base
	return sge.Addr >= m.base && at <= size && uint64(sge.Length) <= size-at
}

// at returns the memory of an SGE, which must be inside the region.
func (m *modelMR) at(sge verbs.SGE) []byte { return m.memory[sge.Addr-m.base:][:sge.Length] }

// pieces returns the memory of a request, or false if the PD cannot access all of it. The keys of empty SGEs are
// ignored.
func (c *modelCard) pieces(pd *modelPD, sges []verbs.SGE, write bool) (list []modelPiece, ok bool) {
	for _, sge := range sges {
		if sge.Length == 0 {
			continue
		}
		mr := c.mrs[sge.LKey]
		if mr == nil || mr.pd != pd || !mr.covers(sge) || write && !mr.write {
			return nil, false
		}
		list = append(list, modelPiece{mr, int(sge.Addr - mr.base), int(sge.Length)})
	}
	return list, true
}

// modelPiece is a part of a region.
type modelPiece struct {
	mr        *modelMR
	from, len int
}

func (p modelPiece) bytes() []byte   { return p.mr.memory[p.from:][:p.len] }
func (p modelPiece) unknown() []bool { return p.mr.unknown[p.from:][:p.len] }

func lengthOf(sges []verbs.SGE) (n int) {
	for _, sge := range sges {
		n += int(sge.Length)
	}
	return n
}
