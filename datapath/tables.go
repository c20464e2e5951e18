package datapath

import "github.com/roced/roced/datapath/wire"

// The exported methods of this file change what the engine knows. They are for functions that run
// in Do.

// SetAddresses replaces the device's own addresses.
func (e *Engine) SetAddresses(own []wire.GID) {
	clear(e.own)
	for _, gid := range own {
		e.own[gid] = struct{}{}
	}
	e.passed = passedPair{}
}

// SetBroadcasts replaces the broadcasts of the device's subnets: nobody sends from them.
func (e *Engine) SetBroadcasts(broadcasts []wire.GID) {
	e.broadcasts = map[wire.GID]struct{}{}
	for _, gid := range broadcasts {
		e.broadcasts[gid] = struct{}{}
	}
	e.passed = passedPair{}
}

// SetMACs replaces the device's own MACs: unicast frames to others are not for it. Before
// the first call, and with none, all are.
func (e *Engine) SetMACs(macs ...wire.MAC) { e.macs = macs }

// SetGroup replaces the queue pairs that are attached to a group; none takes it away.
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

// SetMTU changes the longest payload sent and taken.
func (e *Engine) SetMTU(mtu wire.MTU) { e.mtu = mtu.Bytes() }

// SetLink says whether the link takes frames. Those that it has not taken when it goes
// down are dropped: nobody wants them when it is up again.
func (e *Engine) SetLink(up bool) {
	if e.down == !up {
		return
	}
	e.down = !up
	e.blocked = up // see what waits
	if e.down {
		e.link.TakeBack()
	}
}

// AddQP makes a queue pair known. No other with the same number modulo the
// table's size exists: the control plane numbers them so.
func (e *Engine) AddQP(qp *QP) {
	e.qps[qp.Number%maxQPs] = qp
	s := qp.Session
	s.qps = grown(s.qps, int(qp.DoorbellIndex))
	s.qps[qp.DoorbellIndex] = qp
	s.doorbell.Serve(len(s.qps))
	qp.SendCQ.QPs[qp], qp.RecvCQ.QPs[qp] = struct{}{}, struct{}{}
}

// RemoveQP forgets a queue pair.
func (e *Engine) RemoveQP(qp *QP) {
	e.qps[qp.Number%maxQPs] = nil
	qp.Session.qps[qp.DoorbellIndex] = nil
	delete(qp.SendCQ.QPs, qp)
	delete(qp.RecvCQ.QPs, qp)
	e.turns.remove(qp)
}
