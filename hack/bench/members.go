// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
)

const (
	memberDepth = 64 // outstanding receives of each queue pair in a group
	memberBatch = 16 // receives per post
)

// memberSlot returns the length of a message's memory in bytes: GRH and payload, rounded up to cache lines.
func memberSlot(size int) int { return (40 + size + 63) &^ 63 }

// member is a queue pair, with the receives that are queued for the next post.
type member struct {
	qp     *verbs.QP
	recvs  [memberBatch]verbs.RecvWR
	queued int
}

// members contains receiving queue pairs of one program, which share a CQ.
type members struct {
	*program
	mr     *verbs.MR
	stride int // length of a slot of mr in bytes
	all    []*member
	depth  int // receives per queue pair
	sges   []verbs.SGE
}

// newMembers creates count queue pairs with depth receives each. depth is a multiple of memberBatch.
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

// memory returns the memory of a receive.
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

// post queues a receive, and posts the queued ones when they are a batch. The slots of a member are consecutive.
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

// rocedSendGroup is like rocedSend, to the group.
func rocedSendGroup(j harness.Job) (harness.Result, error) {
	j.Peer.Address = groupAddress
	return rocedSend(j)
}
