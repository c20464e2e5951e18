// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// Steps with a connection of the two sides. Each end has a queue pair, a CQ and a region that no other step uses.

// connection connects the two sides. It is established again when one of its queue pairs is not in RTS.
type connection struct {
	kind verbs.QPType
	ends [2]*connEnd
}

// connEnd is one end of the connection, with its model.
type connEnd struct {
	*side
	pd    *verbs.PD
	cq    *verbs.CQ
	mr    *verbs.MR
	qp    *verbs.QP
	fast  *verbs.MR // nil if it has none
	plan  modelFast // the last registration
	model *modelEnd
	stub  *modelQP // represents the queue pair in events
}

const (
	connRegion     = 4096 // length of the region in bytes
	connMaxMessage = 3000 // maximum length of a message in bytes
	connMaxRecvs   = 16
)

// newConnection creates both ends without connecting them.
func newConnection(p *player) *connection {
	t := &connection{}
	for i, s := range p.sides {
		t.ends[i] = newConnEnd(s)
		t.ends[i].newFast()
	}
	return t
}

// newConnEnd creates a connEnd without a queue pair.
func newConnEnd(s *side) *connEnd {
	end := &connEnd{side: s, model: &modelEnd{memory: make([]byte, connRegion)}, stub: &modelQP{}}
	var err error
	end.pd, err = s.ctx.AllocPD()
	rig.Check(s, err)
	end.mr, err = end.pd.AllocMR(connRegion, verbs.AccessLocalWrite|rig.AllAccess)
	rig.Check(s, err)
	end.cq, err = s.ctx.CreateCQ(4 * connMaxRecvs)
	rig.Check(s, err)
	return end
}

// endOf returns the end of a side.
func (t *connection) endOf(s *side) *connEnd {
	if t.ends[0].side == s {
		return t.ends[0]
	}
	return t.ends[1]
}

// exchange posts receives at one end and requests at the other, and compares the completions, memory and states.
func (s *side) exchange() {
	t := s.conn
	if t.ends[0].model.state != verbs.QPStateRTS || t.ends[1].model.state != verbs.QPStateRTS || s.chance(30) {
		t.connect()
	}
	from, to := t.ends[0], t.ends[1]
	if s.chance(2) {
		from, to = to, from
	}
	before := [2]map[string]uint64{from.modelDrops(), to.modelDrops()}
	for range s.random.IntN(4) {
		to.postReceive()
	}
	tasks, wrs := from.tasks(to)
	s.note(from.side, "exchange by %v: %+v; receives %+v", t.kind, tasks, to.model.recvs)
	posted := from.model.execute(to.model, tasks)
	s.want("post send", from.qp.PostSend(wrs[:posted]), 0)
	s.pollEnds(t.ends[:])
	for i, end := range []*connEnd{from, to} {
		end.compare()
		end.excludeDrops(before[i])
	}
}

// excludeDrops excludes the drops of the connection from the drops that are compared for the other queue pairs.
func (e *connEnd) excludeDrops(before map[string]uint64) {
	for name, n := range e.modelDrops() {
		e.before[name] += n - before[name]
	}
}

// connect connects both ends: with new queue pairs, or with the reset ones if their type does not change.
func (t *connection) connect() {
	p := t.ends[0].player
	kind := rig.ConnectedTypes[p.random.IntN(len(rig.ConnectedTypes))]
	mtu := verbs.MTU256 + verbs.MTU(p.random.IntN(2))
	for _, e := range t.ends {
		e.renew(t.kind, kind)
	}
	t.kind = kind
	for i, e := range t.ends {
		other := t.ends[1-i]
		access := rig.AllAccess
		if p.chance(4) {
			access = verbs.AccessFlags(p.random.IntN(1<<4)) & rig.AllAccess
		}
		attr := e.device().Connection(other.end.IPv4, other.qp.Number())
		attr.PathMTU, attr.AccessFlags, attr.RNRRetry = mtu, access, 0
		p.want("connect", e.qp.Connect(&attr), 0)
		e.model = &modelEnd{state: verbs.QPStateRTS, unreliable: kind == verbs.QPTypeUC, mtu: mtu.Bytes(), access: access, rights: e.model.rights, memory: e.model.memory, fast: e.model.fast}
		e.rights()
	}
}

// renew resets an end's queue pair, or creates one if there is none or the type changes.
func (e *connEnd) renew(was, kind verbs.QPType) {
	e.note(e.side, "connect by %v", kind)
	if e.qp != nil && was == kind {
		e.want("RESET", e.qp.Modify(&verbs.QPAttr{State: verbs.QPStateReset}, verbs.QPAttrState), 0)
		return
	}
	if e.qp != nil {
		e.want("close QP", e.qp.Close(), 0)
		for event := range e.card.events {
			if event.qp == e.stub {
				delete(e.card.events, event)
			}
		}
	}
	var err error
	e.qp, err = e.pd.CreateQP(&verbs.QPInitAttr{Type: kind, SendCQ: e.cq, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: rig.Depth, MaxRecvWR: connMaxRecvs}})
	e.want("create QP", err, 0)
}

// rights changes the remote access flags of the region.
func (e *connEnd) rights() {
	rights := rig.AllAccess
	if e.chance(4) {
		rights = verbs.AccessFlags(e.random.IntN(1<<4)) & rig.AllAccess
	}
	err := e.mr.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite | rights}, verbs.ReregChangeAccess)
	if e.model.fast.valid { // the fast region contains parts of the region
		e.want("Rereg", err, unix.EBUSY)
		return
	}
	e.want("Rereg", err, 0)
	e.model.rights = rights
}

// place returns a random part of the region, rarely with an invalid key.
func (e *connEnd) place(size int) modelPlace {
	e.ids++
	return modelPlace{id: e.ids, from: e.random.IntN(connRegion - size + 1), size: size, bad: e.chance(30)}
}

// sge returns the SGE of a place.
func (e *connEnd) sge(p modelPlace) verbs.SGE {
	sge := e.mr.SGE(p.from, p.size)
	if p.by != byRegion {
		sge = e.sgeByKey(&p)
	}
	if p.bad {
		sge.LKey ^= 1 << 20
	}
	return sge
}

// size returns the length of a message: sometimes one near a packet boundary.
func (e *connEnd) size() int {
	if e.chance(4) {
		return []int{0, 1, 255, 256, 257, 512, 513}[e.random.IntN(7)]
	}
	return e.random.IntN(connMaxMessage)
}

// postReceive posts a receive, unless the maximum number is outstanding.
func (e *connEnd) postReceive() {
	if recv, some := e.receive(); some {
		e.want("post receive", e.qp.PostRecv([]verbs.RecvWR{{ID: recv.id, SGList: []verbs.SGE{e.sge(recv)}}}), 0)
	}
}

// receive adds a receive to the model and returns it, or false if the maximum number is outstanding.
func (e *connEnd) receive() (recv modelPlace, some bool) {
	if len(e.model.recvs) == connMaxRecvs {
		return recv, false
	}
	size := e.size()
	if !e.chance(4) {
		size = connMaxMessage
	}
	recv = e.place(size)
	e.varyKey(&recv, true)
	e.model.recvs = append(e.model.recvs, recv)
	return recv, true
}

// tasks returns requests to the other end. Each has a fence, so that they are executed one after the other.
func (e *connEnd) tasks(to *connEnd) (tasks []modelTask, wrs []verbs.SendWR) {
	ops := rig.OpsOfAll
	if e.model.unreliable {
		ops = append(rig.OpsOfSend[:len(rig.OpsOfSend):len(rig.OpsOfSend)], rig.OpsOfWrite...)
	}
	registered := false
	for range 1 + e.random.IntN(5) {
		if task, wr, some := e.fastTask(to, &registered); some {
			tasks, wrs = append(tasks, task), append(wrs, wr)
			continue
		}
		task := modelTask{op: ops[e.random.IntN(len(ops))], compareAdd: e.random.Uint64() % 3, swap: e.random.Uint64() % 3}
		size := e.size()
		if isAtomicOp(task.op) {
			size = atomicLen
		}
		task.own, task.peers = e.place(size), to.place(size)
		switch {
		case isAtomicOp(task.op) && !e.chance(20):
			task.peers.from &^= atomicLen - 1
		case e.chance(30):
			task.peers.from += connRegion
		case !isAtomicOp(task.op) || e.chance(4):
			to.varyKey(&task.peers, false)
		}
		e.varyKey(&task.own, true)
		wrs = append(wrs, e.request(to, &task))
		tasks = append(tasks, task)
	}
	return tasks, wrs
}

func isAtomicOp(op verbs.Opcode) bool {
	return op == verbs.WRAtomicCmpAndSwp || op == verbs.WRAtomicFetchAndAdd
}

func (e *connEnd) request(to *connEnd, t *modelTask) verbs.SendWR {
	wr := verbs.SendWR{
		ID: t.own.id, Opcode: t.op, Flags: verbs.SendSignaled | verbs.SendFence, SGList: []verbs.SGE{e.sge(t.own)},
		RemoteAddr: to.mr.IOVA() + uint64(t.peers.from), RKey: to.mr.RKey(), CompareAdd: t.compareAdd, Swap: t.swap,
	}
	if t.base = to.mr.IOVA(); t.peers.by == byFast {
		name := to.sgeByKey(&t.peers)
		wr.RemoteAddr, wr.RKey, t.base = name.Addr, verbs.RKey(name.LKey), to.fast.IOVA()
	}
	if t.peers.bad {
		wr.RKey ^= 1 << 20
	}
	return wr
}

// pollEnds polls until the completions that the model expects have arrived, and waits until no packet is in flight.
func (s *side) pollEnds(ends []*connEnd) {
	left := func() (n int) {
		for _, e := range ends {
			n += len(e.model.done)
		}
		return n
	}
	for end := time.Now().Add(rig.WaitTimeout); left() > 0; {
		for _, e := range ends {
			e.pollCQ()
		}
		if time.Now().After(end) {
			s.differ("no completion within the timeout, want %+v", ends[0].model.done)
		}
	}
	for _, each := range s.sides {
		each.barrier.wait()
	}
	for _, e := range ends {
		e.pollCQ() // fails on an unexpected completion
	}
}

// pollCQ polls the CQ, and compares the completions.
func (e *connEnd) pollCQ() {
	var wcs [8]verbs.WC
	n, err := e.cq.Poll(wcs[:])
	e.want("poll", err, 0)
	for _, wc := range wcs[:n] {
		got := rig.Ended(wc.ID, wc.Status)
		if len(e.model.done) == 0 || e.model.done[0] != got {
			e.differ("completion %+v at %s, the model has %+v", wc, e.name, e.model.done)
		}
		e.model.done = e.model.done[1:]
		e.seen["connected "+statusNames[wc.Status]]++
	}
}

// compare compares the memory and the state of an end after an exchange, and adds the expected event to the model.
func (e *connEnd) compare() {
	if !bytes.Equal(e.mr.Bytes(), e.model.memory) {
		e.differ("the memory of %s's connection differs%s", e.name, firstDifference(e.mr.Bytes(), e.model.memory))
	}
	attr, _, err := e.qp.Query()
	if e.want("query QP", err, 0); attr.State != e.model.state {
		e.differ("the connected queue pair of %s is in %v, the model has %v", e.name, attr.State, e.model.state)
	}
	if e.model.event != rig.NoEvent {
		e.card.events[modelEvent{kind: e.model.event, qp: e.stub}] = true
		e.model.event = rig.NoEvent
	}
}

func firstDifference(got, want []byte) string {
	for i := range got {
		if got[i] != want[i] {
			return fmt.Sprintf(" at %d: %#x, the model has %#x", i, got[i], want[i])
		}
	}
	return ""
}
