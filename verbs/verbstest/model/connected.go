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

// A player's connection: a queue pair at each side, with a CQ and a region that nothing else uses.

// talk is what two sides have between them. It begins anew when one of its queue pairs is not in RTS.
type talk struct {
	kind verbs.QPType
	ends [2]*talker
}

// talker is one end of it, with the model's.
type talker struct {
	*side
	pd    *verbs.PD
	cq    *verbs.CQ
	mr    *verbs.MR
	qp    *verbs.QP
	fast  *verbs.MR // nil if it has none
	plan  modelFast // the last registration
	model *modelEnd
	stub  *modelQP // stands for the queue pair in events
}

const (
	talkRegion = 4096 // bytes
	talkMost   = 3000 // bytes of a message
	talkRecvs  = 16
)

// newTalk makes both ends, which are not connected.
func newTalk(p *player) *talk {
	t := &talk{}
	for i, s := range p.sides {
		t.ends[i] = newTalker(s)
		t.ends[i].newFast()
	}
	return t
}

// newTalker creates a talker without a queue pair.
func newTalker(s *side) *talker {
	end := &talker{side: s, model: &modelEnd{memory: make([]byte, talkRegion)}, stub: &modelQP{}}
	var err error
	end.pd, err = s.ctx.AllocPD()
	rig.Check(s, err)
	end.mr, err = end.pd.AllocMR(talkRegion, verbs.AccessLocalWrite|rig.AllAccess)
	rig.Check(s, err)
	end.cq, err = s.ctx.CreateCQ(4 * talkRecvs)
	rig.Check(s, err)
	return end
}

// endOf is a side's end.
func (t *talk) endOf(s *side) *talker {
	if t.ends[0].side == s {
		return t.ends[0]
	}
	return t.ends[1]
}

// converse posts receives at one end and requests at the other, and compares the results.
func (s *side) converse() {
	t := s.talk
	if t.ends[0].model.state != verbs.QPStateRTS || t.ends[1].model.state != verbs.QPStateRTS || s.chance(30) {
		t.connect()
	}
	from, to := t.ends[0], t.ends[1]
	if s.chance(2) {
		from, to = to, from
	}
	before := [2]map[string]uint64{from.modelDrops(), to.modelDrops()}
	for range s.random.IntN(4) {
		to.await()
	}
	tasks, wrs := from.tasks(to)
	s.note(from.side, "converse by %v: %+v; receives %+v", t.kind, tasks, to.model.recvs)
	posted := from.model.carryOut(to.model, tasks)
	s.want("post send", from.qp.PostSend(wrs[:posted]), 0)
	s.takeEach(t.ends[:])
	for i, end := range []*talker{from, to} {
		end.compare()
		end.excuse(before[i])
	}
}

// excuse removes the lost packets of the talk from the losses of the other queue pairs.
func (e *talker) excuse(before map[string]uint64) {
	for name, n := range e.modelDrops() {
		e.before[name] += n - before[name]
	}
}

// connect gives both ends new queue pairs or, if their type stays, resets them.
func (t *talk) connect() {
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

// renew brings an end's queue pair to RESET.
func (e *talker) renew(was, kind verbs.QPType) {
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
	e.qp, err = e.pd.CreateQP(&verbs.QPInitAttr{Type: kind, SendCQ: e.cq, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: rig.Depth, MaxRecvWR: talkRecvs}})
	e.want("create QP", err, 0)
}

// rights changes what peers may do with the region.
func (e *talker) rights() {
	rights := rig.AllAccess
	if e.chance(4) {
		rights = verbs.AccessFlags(e.random.IntN(1<<4)) & rig.AllAccess
	}
	err := e.mr.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite | rights}, verbs.ReregChangeAccess)
	if e.model.fast.valid { // it has pieces of the region
		e.want("Rereg", err, unix.EBUSY)
		return
	}
	e.want("Rereg", err, 0)
	e.model.rights = rights
}

// place is a part of a region, seldom by a bad key.
func (e *talker) place(size int) modelPlace {
	e.ids++
	return modelPlace{id: e.ids, from: e.random.IntN(talkRegion - size + 1), size: size, bad: e.chance(30)}
}

// sge names it.
func (e *talker) sge(p modelPlace) verbs.SGE {
	sge := e.mr.SGE(p.from, p.size)
	if p.by != byRegion {
		sge = e.nameOf(&p)
	}
	if p.bad {
		sge.LKey ^= 1 << 20
	}
	return sge
}

// size is the length of a message.
func (e *talker) size() int {
	if e.chance(4) {
		return []int{0, 1, 255, 256, 257, 512, 513}[e.random.IntN(7)]
	}
	return e.random.IntN(talkMost)
}

// await posts a receive.
func (e *talker) await() {
	if recv, some := e.receive(); some {
		e.want("post receive", e.qp.PostRecv([]verbs.RecvWR{{ID: recv.id, SGList: []verbs.SGE{e.sge(recv)}}}), 0)
	}
}

// receive is a receive, which the model has from now on; false if it has enough.
func (e *talker) receive() (recv modelPlace, some bool) {
	if len(e.model.recvs) == talkRecvs {
		return recv, false
	}
	size := e.size()
	if !e.chance(4) {
		size = talkMost
	}
	recv = e.place(size)
	e.otherwise(&recv, true)
	e.model.recvs = append(e.model.recvs, recv)
	return recv, true
}

// tasks are requests to the other end. Each waits for the one before it, so that they are carried out one by one.
func (e *talker) tasks(to *talker) (tasks []modelTask, wrs []verbs.SendWR) {
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
			task.peers.from += talkRegion
		case !isAtomicOp(task.op) || e.chance(4):
			to.otherwise(&task.peers, false)
		}
		e.otherwise(&task.own, true)
		wrs = append(wrs, e.request(to, &task))
		tasks = append(tasks, task)
	}
	return tasks, wrs
}

func isAtomicOp(op verbs.Opcode) bool {
	return op == verbs.WRAtomicCmpAndSwp || op == verbs.WRAtomicFetchAndAdd
}

func (e *talker) request(to *talker, t *modelTask) verbs.SendWR {
	wr := verbs.SendWR{
		ID: t.own.id, Opcode: t.op, Flags: verbs.SendSignaled | verbs.SendFence, SGList: []verbs.SGE{e.sge(t.own)},
		RemoteAddr: to.mr.IOVA() + uint64(t.peers.from), RKey: to.mr.RKey(), CompareAdd: t.compareAdd, Swap: t.swap,
	}
	if t.base = to.mr.IOVA(); t.peers.by == byFast {
		name := to.nameOf(&t.peers)
		wr.RemoteAddr, wr.RKey, t.base = name.Addr, verbs.RKey(name.LKey), to.fast.IOVA()
	}
	if t.peers.bad {
		wr.RKey ^= 1 << 20
	}
	return wr
}

// takeEach waits for the completions that the model expects, and until all packets have arrived.
func (s *side) takeEach(ends []*talker) {
	left := func() (n int) {
		for _, e := range ends {
			n += len(e.model.done)
		}
		return n
	}
	for end := time.Now().Add(rig.WaitTimeout); left() > 0; {
		for _, e := range ends {
			e.take()
		}
		if time.Now().After(end) {
			s.part("completions do not come: %+v", ends[0].model.done)
		}
	}
	for _, each := range s.sides {
		each.beacon.shine()
	}
	for _, e := range ends {
		e.take() // nothing
	}
}

// take polls, and compares.
func (e *talker) take() {
	var wcs [8]verbs.WC
	n, err := e.cq.Poll(wcs[:])
	e.want("poll", err, 0)
	for _, wc := range wcs[:n] {
		got := rig.Ended(wc.ID, wc.Status)
		if len(e.model.done) == 0 || e.model.done[0] != got {
			e.part("completion %+v at %s, the model has %+v", wc, e.name, e.model.done)
		}
		e.model.done = e.model.done[1:]
		e.seen["connected "+statusNames[wc.Status]]++
	}
}

// compare looks at an end when all is over.
func (e *talker) compare() {
	if !bytes.Equal(e.mr.Bytes(), e.model.memory) {
		e.part("the memory of %s's connection differs%s", e.name, firstDifference(e.mr.Bytes(), e.model.memory))
	}
	attr, _, err := e.qp.Query()
	if e.want("query QP", err, 0); attr.State != e.model.state {
		e.part("the connected queue pair of %s is in %v, the model has %v", e.name, attr.State, e.model.state)
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
