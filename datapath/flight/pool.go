// SPDX-License-Identifier: Apache-2.0

package flight

import "time"

// pool is one budget of a tenant: the packets granted or in flight, and a FIFO queue of the flows that wait for a
// grant.
type pool struct {
	kind       Kind
	first      bool      // it is for first packets
	granted    Amount    // packets in flight, or granted and not sent yet
	epoch      uint32    // number of restarts; the amounts of grants from earlier epochs do not count
	head, tail *Flow     // the queue
	lapsed     *Flow     // for first packets: the last flow in the queue whose peer has responded before; nil: none
	waiting    int       // number of flows in the queue
	since      time.Time // time of the last grant, or, if later, when the first flow began to wait
	vain       uint8     // number of restarts since packets were last acknowledged
}

// obtain makes a grant to a flow if there is room; otherwise the flow waits.
func (p *pool) obtain(f *Flow, packets int) bool {
	g := &f.grants[p.kind]
	if g.queue != nil && g.queue != p {
		g.queue.leave(f)
	}
	if p.head == nil && p.room(f, packets) {
		g.deficit = f.share.quantum
		f.give(p, packets)
		return true
	}
	if g.wants = packets; g.queue == nil {
		p.wait(f)
	}
	return false
}

// room reports whether there is room for a grant. An empty pool always has room for one. A READ response needs room for
// at most half of the budget.
func (p *pool) room(f *Flow, packets int) bool {
	limit, need := f.share.tenant, f.amount(packets)
	if p.kind == Reads {
		need = need.least(limit.over(2))
	} else {
		need.Bytes = min(need.Bytes, f.share.quantum)
	}
	return p.granted.Packets == 0 || p.granted.plus(need).within(limit)
}

// count replaces the amount that a grant counts for, and moves it to this pool.
func (p *pool) count(g *grant, a Amount) {
	same := g.pool != nil && g.epoch == g.pool.epoch
	if same && g.pool == p && g.counted == a {
		return
	}
	if same {
		g.pool.granted = g.pool.granted.minus(g.counted)
	}
	p.granted = p.granted.plus(a)
	g.pool, g.epoch, g.counted = p, p.epoch, a
}

// admit makes grants to waiting flows, as far as there is room, at most grantBudget of them.
func (p *pool) admit() {
	for budget := grantBudget; p.head != nil && budget > 0 && p.admitHead(); budget-- {
	}
}

// admitHead makes a grant to the first flow in the queue if there is room, and reports whether it has changed the
// queue. If there are only few flows by now, the flow continues without a grant. A flow that has sent too many bytes
// with its last grants moves to the end of the queue.
func (p *pool) admitHead() bool {
	f := p.head
	g, wants := &f.grants[p.kind], 0
	if f.share = f.divide(); f.share.grant > 0 {
		if wants = g.wants; !p.room(f, wants) {
			return false
		}
		if g.deficit = min(g.deficit+f.share.quantum, f.share.quantum); g.deficit <= 0 && !p.first {
			p.leave(f)
			p.wait(f)
			return true
		}
	}
	p.since = f.tenant.scheduler.now
	p.leave(f)
	f.give(p, wants)
	f.owner.Ready()
	return true
}

// wait appends a flow to the queue. In a pool for first packets, a flow whose peer has responded before precedes all
// flows whose peers never have.
func (p *pool) wait(f *Flow) {
	before := p.tail
	if p.first && f.heard[p.kind] != 0 {
		before, p.lapsed = p.lapsed, f
	}
	p.insert(f, before)
	f.tenant.waits++
	if p.waiting++; p.waiting == 1 {
		p.since = f.tenant.scheduler.now
		f.tenant.schedule()
	}
}

// insert inserts a flow after before, or at the head if before is nil.
func (p *pool) insert(f, before *Flow) {
	g, after := &f.grants[p.kind], p.head
	if before == nil {
		p.head = f
	} else {
		link := &before.grants[p.kind]
		after, link.after = link.after, f
	}
	if after == nil {
		p.tail = f
	} else {
		after.grants[p.kind].before = f
	}
	g.queue, g.before, g.after = p, before, after
}

// leave removes a flow from the queue.
func (p *pool) leave(f *Flow) {
	g := &f.grants[p.kind]
	before, after := g.before, g.after
	g.queue, g.before, g.after = nil, nil, nil
	f.tenant.waits--
	if p.waiting--; p.lapsed == f {
		p.lapsed = before
	}
	if before == nil {
		p.head = after
	} else {
		before.grants[p.kind].after = after
	}
	if after == nil {
		p.tail = before
	} else {
		after.grants[p.kind].before = before
	}
}

// due returns the time at which the patience of the waiting flows ends; zero if no flow waits.
func (p *pool) due(patience time.Duration) (at time.Time) {
	if p.head != nil {
		at = p.since.Add(patience << p.vain)
	}
	return at
}

// restart resets the amount of the pool to zero. A flow that has packets in flight is counted again when some of them
// are acknowledged. Flows that waited for grants continue without one, as strangers, until their peers have responded.
// In a pool for first packets, waiting flows are admitted as far as there is room.
func (p *pool) restart(now time.Time) {
	p.granted, p.since = Amount{}, now
	p.epoch++
	if p.first {
		for p.head != nil && p.admitHead() {
		}
		return
	}
	p.vain = min(p.vain+1, doublings)
	for f := p.head; f != nil; f = p.head {
		p.leave(f)
		f.owner.Ready()
	}
}
