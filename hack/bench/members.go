// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
)

const (
	memberDepth = 64 // receives outstanding of each queue pair in a group
	memberBatch = 16 // receives posted at a time
)

// memberSlot is the memory of a message, in bytes: GRH and payload, in whole cache lines.
func memberSlot(size int) int { return (40 + size + 63) &^ 63 }

// member is a queue pair with receives, and those that wait to be posted again.
type member struct {
	qp     *verbs.QP
	recvs  [memberBatch]verbs.RecvWR
	queued int
}

// members are queue pairs of one program that receive, completing to one CQ.
type members struct {
	*program
	mr     *verbs.MR
	stride int // of the slots of mr, bytes
	all    []*member
	depth  int // receives of each
	sges   []verbs.SGE
}

// newMembers makes queue pairs with so many receives each, a multiple of memberBatch.
func (p *program) newMembers(count, depth, size int) (m *members, err error) {
	m = &members{program: p, stride: memberSlot(size), depth: depth}
	if m.mr, err = p.pd.AllocMR(count*depth*m.stride, verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	if p.recv, err = p.ctx.CreateCQ(count * depth); err != nil {
		return nil, err
	}
	for i := range count * depth {
		m.sges = append(m.sges, m.mr.SGE(i*m.stride, m.stride))
	}
	for i := range count {
		qp, err := p.newQP(depth)
		if err != nil {
			return nil, err
		}
		m.all = append(m.all, &member{qp: qp})
		for k := range depth {
			if err := m.post(uint64(i*depth + k)); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// memory is where a receive puts its message.
func (m *members) memory(id uint64) []byte { return m.mr.Bytes()[int(id)*m.stride:][:m.stride] }

func (p *program) joinGroup(j harness.Job) (*members, error) {
	m, err := p.newMembers(j.Receivers, memberDepth, j.Size)
	if err != nil {
		return nil, err
	}
	group := verbs.GID(netip.MustParseAddr(groupAddress).As16())
	for _, member := range m.all {
		if err := member.qp.AttachMcast(group, 0); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// post queues a receive, and posts when there is a batch of them. The slots of a member follow each other.
func (m *members) post(slot uint64) error {
	to := m.all[int(slot)/m.depth]
	to.recvs[to.queued] = verbs.RecvWR{ID: slot, SGList: m.sges[slot : slot+1]}
	if to.queued++; to.queued < memberBatch {
		return nil
	}
	to.queued = 0
	return to.qp.PostRecv(to.recvs[:])
}

func rocedReceiveGroup(j harness.Job) (harness.Result, error) {
	p, err := openProgram(j)
	if err != nil {
		return harness.Result{}, err
	}
	m, err := p.joinGroup(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{QPN: uint32(verbs.MulticastQPN)}); err != nil {
		return harness.Result{}, err
	}
	var counted harness.Meter
	for !harness.Stopping.Load() {
		n, err := p.poll(p.recv)
		if err != nil {
			return harness.Result{}, err
		}
		for i := range p.wcs[:n] {
			wc := &p.wcs[i]
			if err := m.post(wc.ID); err != nil {
				return harness.Result{}, err
			}
		}
		if n > 0 {
			counted.Add(n)
		}
	}
	return counted.Result(), p.close()
}

// rocedSendGroup is rocedSend to the group.
func rocedSendGroup(j harness.Job) (harness.Result, error) {
	j.Peer.Address = groupAddress
	return rocedSend(j)
}
