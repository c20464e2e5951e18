// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// A player's XRC: an initiator at one side, and at the other a target, which two handles have open, and SRQs of its domain.
// Requests go to any of these, and occasionally to an unknown one. The effect of a request at an SRQ is that at the
// end of a connection that has the SRQ's receives and memory: the model of that is used.

// xrcTalk is what two sides have between them. It begins anew when one of its queue pairs is not in RTS.
type xrcTalk struct {
	from    *talker
	at      *side // of the target
	domain  *verbs.XRCD
	handles [2]*verbs.QP // of the target
	stubs   [2]*modelQP  // stand for these in events
	target  modelEnd     // its state, and its access flags
	queues  []*xrcQueue
	apart   verbs.SRQN // of an SRQ of another domain
}

// xrcQueue is an SRQ of the domain, with a PD, a region and a CQ that nothing else uses.
type xrcQueue struct {
	*talker
	srq *verbs.SRQ
}

// xrcTask is a request, with the queue that it is for: nil for none.
type xrcTask struct {
	modelTask
	to *xrcQueue
}

const talkQueues = 2

// newXRCTalk creates everything except the connection.
func newXRCTalk(from, at *side) *xrcTalk {
	x := &xrcTalk{from: newTalker(from), at: at, stubs: [2]*modelQP{{}, {}}}
	var err error
	x.domain, err = at.ctx.AllocXRCD()
	rig.Check(at, err)
	for range talkQueues {
		x.queues = append(x.queues, newXRCQueue(at, x.domain))
	}
	other, err := at.ctx.AllocXRCD()
	rig.Check(at, err)
	x.apart = newXRCQueue(at, other).srq.Number()
	return x
}

func newXRCQueue(at *side, domain *verbs.XRCD) *xrcQueue {
	q := &xrcQueue{talker: newTalker(at)}
	var err error
	q.srq, err = q.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: talkRecvs, Type: verbs.SRQTypeXRC, XRCD: domain, CQ: q.cq})
	rig.Check(at, err)
	return q
}

// converseXRC posts receives to the SRQs and requests to the initiator, and compares the results.
func (s *side) converseXRC() {
	x := s.xrc
	if x.from.model.state != verbs.QPStateRTS || x.target.state != verbs.QPStateRTS || s.chance(30) {
		x.connect()
	}
	before := [2]map[string]uint64{s.modelDrops(), x.at.modelDrops()}
	for _, q := range x.queues {
		for range s.random.IntN(4) {
			q.awaitShared()
		}
	}
	tasks, wrs := x.tasks()
	s.note(s, "converse by XRC: %+v", tasks)
	x.carryOut(tasks)
	s.want("post send by XRC", x.from.qp.PostSend(wrs), 0)
	s.takeEach(append([]*talker{x.from}, x.talkers()...))
	x.compare()
	for i, end := range []*talker{x.from, x.queues[0].talker} {
		end.excuse(before[i])
	}
}

func (x *xrcTalk) talkers() (list []*talker) {
	for _, q := range x.queues {
		list = append(list, q.talker)
	}
	return list
}

// connect makes both ends anew, or resets them.
func (x *xrcTalk) connect() {
	s := x.from.side
	s.note(s, "connect by XRC")
	if x.from.qp != nil && !s.chance(4) {
		for _, qp := range []*verbs.QP{x.from.qp, x.handles[s.random.IntN(2)]} {
			s.want("RESET of XRC", qp.Modify(&verbs.QPAttr{State: verbs.QPStateReset}, verbs.QPAttrState), 0)
		}
	} else {
		x.renew()
	}
	access := rig.AllAccess
	if s.chance(4) {
		access = verbs.AccessFlags(s.random.IntN(1<<4)) & rig.AllAccess
	}
	mtu := verbs.MTU256 + verbs.MTU(s.random.IntN(2))
	for _, end := range []struct {
		of, to *side
		qp     *verbs.QP
		peer   verbs.QPN
	}{{s, x.at, x.from.qp, x.handles[0].Number()}, {x.at, s, x.handles[s.random.IntN(2)], x.from.qp.Number()}} {
		attr := end.of.device().Connection(end.to.end.IPv4, end.peer)
		attr.PathMTU, attr.AccessFlags, attr.RNRRetry = mtu, access, 0
		s.want("connect XRC", end.qp.Connect(&attr), 0)
	}
	x.from.model = &modelEnd{state: verbs.QPStateRTS, mtu: mtu.Bytes(), memory: x.from.model.memory}
	x.target = modelEnd{state: verbs.QPStateRTS, mtu: mtu.Bytes(), access: access}
	for _, q := range x.queues {
		q.rights()
	}
}

// renew makes other queue pairs. The target lives until both handles are closed.
func (x *xrcTalk) renew() {
	s := x.from.side
	if x.from.qp != nil {
		s.want("close initiator", x.from.qp.Close(), 0)
		for i, qp := range x.handles {
			s.want("close target", qp.Close(), 0)
			for event := range x.at.card.events {
				if event.qp == x.stubs[i] {
					delete(x.at.card.events, event)
				}
			}
		}
	}
	var err error
	x.from.qp, err = x.from.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCSend, SendCQ: x.from.cq, Cap: verbs.QPCap{MaxSendWR: rig.Depth}})
	s.want("create initiator", err, 0)
	x.handles[0], err = x.domain.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCRecv})
	s.want("create target", err, 0)
	x.handles[1], err = x.domain.OpenQP(&verbs.QPOpenAttr{Number: x.handles[0].Number()})
	s.want("open target", err, 0)
}

// awaitShared posts a receive to the queue.
func (q *xrcQueue) awaitShared() {
	if recv, some := q.receive(); some {
		q.want("post receive by XRC", q.srq.PostRecv([]verbs.RecvWR{{ID: recv.id, SGList: []verbs.SGE{q.sge(recv)}}}), 0)
	}
}

// tasks are requests to the queues, as many as the initiator has room for at most.
func (x *xrcTalk) tasks() (tasks []xrcTask, wrs []verbs.SendWR) {
	s := x.from.side
	for range 1 + s.random.IntN(2) {
		i := s.random.IntN(talkQueues)
		q, other := x.queues[i], x.queues[1-i]
		some, requests := x.from.tasks(q.talker)
		for j, task := range some {
			wr, one := requests[j], xrcTask{task, q}
			wr.RemoteSRQN = q.srq.Number()
			switch {
			case s.chance(30):
				one.to, wr.RemoteSRQN = nil, []verbs.SRQN{0, x.apart, q.srq.Number() ^ 1<<20}[s.random.IntN(3)]
			case s.chance(30): // the other queue's memory
				one.peers.bad, wr.RKey = true, other.mr.RKey()
			}
			tasks, wrs = append(tasks, one), append(wrs, wr)
		}
	}
	most := min(len(tasks), rig.Depth)
	return tasks[:most], wrs[:most]
}

// carryOut executes requests, and records the completions.
func (x *xrcTalk) carryOut(tasks []xrcTask) {
	from := x.from.model
	for i := range tasks {
		task := &tasks[i]
		if from.state != verbs.QPStateRTS {
			from.done = append(from.done, rig.Flushed(task.own.id))
			continue
		}
		status := x.do(task)
		from.done = append(from.done, rig.Ended(task.own.id, status))
		if status != verbs.WCSuccess {
			from.state = verbs.QPStateErr
		}
	}
}

// do carries one request out, at the queue that it names.
func (x *xrcTalk) do(task *xrcTask) verbs.WCStatus {
	if task.to == nil {
		if task.own.bad && task.own.size > 0 {
			return verbs.WCLocProtErr
		}
		return x.note(&x.target, x.target.fail(verbs.WCRemInvReqErr, verbs.EventQPReqErr))
	}
	q := task.to.model
	q.state, q.mtu, q.access = x.target.state, x.target.mtu, x.target.access
	return x.note(q, x.from.model.do(q, &task.modelTask))
}

// note sets the target to the state after a request, and notifies all handles of it.
func (x *xrcTalk) note(left *modelEnd, status verbs.WCStatus) verbs.WCStatus {
	if x.target.state = left.state; left.state == verbs.QPStateErr {
		for _, stub := range x.stubs {
			x.at.card.events[modelEvent{kind: verbs.EventQPLastWQEReached, qp: stub}] = true
			if left.event != rig.NoEvent {
				x.at.card.events[modelEvent{kind: left.event, qp: stub}] = true
			}
		}
	}
	left.event = rig.NoEvent
	return status
}

// compare looks at both ends when all is over.
func (x *xrcTalk) compare() {
	for _, e := range append(x.talkers(), x.from) {
		if !bytes.Equal(e.mr.Bytes(), e.model.memory) {
			e.part("the memory of %s's XRC differs%s", e.name, firstDifference(e.mr.Bytes(), e.model.memory))
		}
	}
	for qp, want := range map[*verbs.QP]verbs.QPState{x.from.qp: x.from.model.state, x.handles[0]: x.target.state, x.handles[1]: x.target.state} {
		attr, _, err := qp.Query()
		if x.from.want("query XRC", err, 0); attr.State != want {
			x.from.part("queue pair %v of XRC is in %v, the model has %v", qp.Number(), attr.State, want)
		}
	}
	x.from.seen["XRC target in "+x.target.state.String()]++
}

// stubOf is what stands for a target in events; nil if the queue pair is none of the talk's.
func (x *xrcTalk) stubOf(qp *verbs.QP) *modelQP {
	for i, handle := range x.handles {
		if handle != nil && handle == qp {
			return x.stubs[i]
		}
	}
	return nil
}
