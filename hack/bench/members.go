package main

import (
	"net/netip"

	"github.com/roced/roced/verbs"
)

const (
	memberDepth = 64 // receives outstanding of each queue pair in a group
	memberBatch = 16 // receives posted at a time
)

// memberSlot is the memory of a message, in bytes: GRH and payload, in whole cache lines.
func memberSlot(size int) int { return (40 + size + 63) &^ 63 }

// member is a queue pair in the group, with the receives that wait to be posted again.
type member struct {
	qp     *verbs.QP
	recvs  [memberBatch]verbs.RecvWR
	queued int
}

// members are the queue pairs of one program in one group, completing to one CQ.
type members struct {
	*program
	mr   *verbs.MR
	all  []*member
	base verbs.QPN // of the first: their numbers follow each other
	sges []verbs.SGE
}

func (p *program) joinGroup(j job) (*members, error) {
	stride := memberSlot(j.Size)
	mr, err := p.pd.AllocMR(j.Receivers*memberDepth*stride, verbs.AccessLocalWrite)
	if err != nil {
		return nil, err
	}
	if p.recv, err = p.ctx.CreateCQ(j.Receivers * memberDepth); err != nil {
		return nil, err
	}
	m := &members{program: p, mr: mr}
	for i := range j.Receivers * memberDepth {
		m.sges = append(m.sges, mr.SGE(i*stride, stride))
	}
	group := verbs.GID(netip.MustParseAddr(groupAddress).As16())
	for i := range j.Receivers {
		qp, err := p.newQP(memberDepth)
		if err != nil {
			return nil, err
		}
		if err := qp.AttachMcast(group, 0); err != nil {
			return nil, err
		}
		m.all = append(m.all, &member{qp: qp})
		for k := range memberDepth {
			if err := m.post(i, uint64(i*memberDepth+k)); err != nil {
				return nil, err
			}
		}
	}
	m.base = m.all[0].qp.Number()
	return m, nil
}

// post queues a receive, and posts when there is a batch of them.
func (m *members) post(i int, slot uint64) error {
	to := m.all[i]
	to.recvs[to.queued] = verbs.RecvWR{ID: slot, SGList: m.sges[slot : slot+1]}
	if to.queued++; to.queued < memberBatch {
		return nil
	}
	to.queued = 0
	return to.qp.PostRecv(to.recvs[:])
}

func rocedReceiveGroup(j job) (result, error) {
	p, err := openProgram(j)
	if err != nil {
		return result{}, err
	}
	m, err := p.joinGroup(j)
	if err != nil {
		return result{}, err
	}
	if err := announce(endpoint{QPN: uint32(verbs.MulticastQPN)}); err != nil {
		return result{}, err
	}
	var counted meter
	for !stopping.Load() {
		n, err := p.poll(p.recv)
		if err != nil {
			return result{}, err
		}
		for i := range p.wcs[:n] {
			wc := &p.wcs[i]
			if err := m.post(int(wc.QPN-m.base), wc.ID); err != nil {
				return result{}, err
			}
		}
		if n > 0 {
			counted.add(n)
		}
	}
	return counted.result(), p.device.Close()
}

// rocedSendGroup is rocedSend to the group.
func rocedSendGroup(j job) (result, error) {
	j.Peer.Address = groupAddress
	return rocedSend(j)
}
