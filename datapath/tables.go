package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

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
	e.byDoorbell = grown(e.byDoorbell, int(qp.Index))
	e.byDoorbell[qp.Index] = qp
	qp.SendCQ.QPs[qp], qp.RecvCQ.QPs[qp] = struct{}{}, struct{}{}
}

// RemoveQP forgets a queue pair.
func (e *Engine) RemoveQP(qp *QP) {
	e.qps[qp.Number%maxQPs] = nil
	e.byDoorbell[qp.Index] = nil
	delete(qp.SendCQ.QPs, qp)
	delete(qp.RecvCQ.QPs, qp)
	e.turns.remove(qp)
}

// SetMR puts a memory region at its handle's place; nil takes what is there away. Its
// LKey is that of the handle (LKeyFor).
func (e *Engine) SetMR(handle uint32, mr *MR) {
	place, _ := SplitHandle(handle)
	e.mrs = grown(e.mrs, int(place))
	e.mrs[place] = mr
}

// SetAH puts an address handle at its place; nil takes what is there away.
func (e *Engine) SetAH(handle uint32, ah *AH) {
	place, _ := SplitHandle(handle)
	e.ahs = grown(e.ahs, int(place))
	e.ahs[place] = ah
	if ah != nil {
		ah.handle = handle
	}
}

// ah finds the address handle that a request names, nil if that is none, or closed.
func (e *Engine) ah(handle uint32) *AH {
	place, _ := SplitHandle(handle)
	if int(place) >= len(e.ahs) || e.ahs[place] == nil || e.ahs[place].handle != handle {
		return nil
	}
	return e.ahs[place]
}

func grown[T any](table []*T, index int) []*T {
	for len(table) <= index {
		table = append(table, nil)
	}
	return table
}

// memory gives the bytes that an SGE names, nil if it may not use them.
func (e *Engine) memory(s ring.SGE, pd PD, write bool) []byte {
	place := lkeyPlace(s.LKey)
	if place >= len(e.mrs) {
		return nil
	}
	mr := e.mrs[place]
	if mr == nil || mr.LKey != s.LKey || mr.PD != pd || write && !mr.Write {
		return nil
	}
	size := uint64(len(mr.Memory))
	if s.Addr > size || uint64(s.Length) > size-s.Addr {
		return nil
	}
	return mr.Memory[s.Addr : s.Addr+uint64(s.Length) : s.Addr+uint64(s.Length)]
}
