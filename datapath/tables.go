package datapath

import "github.com/roced/roced/datapath/wire"

// The exported methods of this file change the engine's tables. They may only be called inside Do.

// SetAddresses replaces the card's own addresses.
func (t *tables) SetAddresses(own []wire.GID) {
	clear(t.own)
	for _, gid := range own {
		t.own[gid] = struct{}{}
	}
	t.passed = passedPair{}
}

// SetBroadcasts replaces the broadcast addresses of the card's subnets. They are no valid sources.
func (t *tables) SetBroadcasts(broadcasts []wire.GID) {
	t.broadcasts = map[wire.GID]struct{}{}
	for _, gid := range broadcasts {
		t.broadcasts[gid] = struct{}{}
	}
	t.passed = passedPair{}
}

// SetMACs replaces the card's own MACs: unicast frames to other MACs are dropped. Before the first
// call, and after one without MACs, none are.
func (t *tables) SetMACs(macs ...wire.MAC) { t.macs = macs }

// SetGroup replaces the queue pairs that are attached to a group. Without members the group is
// removed.
func (e *Engine) SetGroup(mgid wire.GID, members []*QP) {
	e.passed = passedPair{}
	e.arriving.keepMembers(mgid, members)
	e.looping.keepMembers(mgid, members)
	if len(members) == 0 {
		delete(e.groups, mgid)
		return
	}
	e.groups[mgid] = members
}

// SetMTU changes the longest payload that is sent and received.
func (t *tables) SetMTU(mtu wire.MTU) { t.mtu = mtu.Bytes() }

// SetLink says whether the link takes frames. Frames that it has not taken when it goes down are
// dropped: they would be too old when it comes up again.
func (e *Engine) SetLink(up bool) {
	if e.down == !up {
		return
	}
	e.down = !up
	e.blocked = up // flush what waits
	if e.down {
		e.link.TakeBack()
	}
}

// AddQP makes the engine serve a queue pair. The control plane chooses numbers so that no two queue
// pairs have the same number modulo the size of the table.
func (e *Engine) AddQP(qp *QP) {
	qp.service.open(e, qp)
	e.count++
	e.qps[qp.Number%maxQPs] = qp
	if e.others != nil {
		e.others.shared.homes.set(qp.Number, e)
	}
	s := qp.Session
	s.qps = grow(s.qps, int(qp.DoorbellIndex))
	s.qps[qp.DoorbellIndex] = qp
	s.doorbell.Serve(len(s.qps))
	for _, cq := range qp.cqs() {
		cq.QPs[qp] = struct{}{}
	}
}

// cqs are those that it completes to itself: none of an XRC target.
func (qp *QP) cqs() []*CQ {
	if qp.Domain != nil {
		return nil
	}
	return []*CQ{qp.SendCQ, qp.RecvCQ}
}

// RemoveQP removes a queue pair.
func (e *Engine) RemoveQP(qp *QP) {
	qp.service.close()
	e.count--
	e.qps[qp.Number%maxQPs] = nil
	if e.others != nil {
		e.others.shared.homes.set(qp.Number, nil)
	}
	qp.Session.qps[qp.DoorbellIndex] = nil
	for _, cq := range qp.cqs() {
		delete(cq.QPs, qp)
	}
	e.turns.remove(qp)
}

// Leaving says whether who closes a queue pair is to wait for its send requests: some have not wholly left, and
// can still. It is not to wait for answers: a peer that is dead gives none, and requests that were sent are
// completed by nothing else.
func (e *Engine) Leaving(qp *QP) bool { return qp.service.leaving() }
