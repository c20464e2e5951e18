// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// Steps with XRC: an initiator at one side, and at the other a target with two open handles, and SRQs of its domain.
// Requests are sent to all of these SRQs, and rarely to an unknown one. The model of a request is that of a connection
// whose responder has the SRQ's receives and memory.

// xrcConnection is an XRC connection. It is established again when one of its queue pairs is not in RTS.
type xrcConnection struct {
	from    *connEnd
	at      *side // of the target
	domain  *verbs.XRCD
	handles [2]*verbs.QP // of the target
	stubs   [2]*modelQP  // represent the handles in events
	target  modelEnd     // state and access flags of the target
	queues  []*xrcQueue
	apart   verbs.SRQN // an SRQ of another domain
}

// xrcQueue is an SRQ of the domain, with its own PD, region and CQ.
type xrcQueue struct {
	*connEnd
	srq *verbs.SRQ
}

// xrcTask is a request and its destination, which is nil for an unknown SRQ.
type xrcTask struct {
	modelTask
	to *xrcQueue
}

const xrcQueues = 2

// newXRCConnection creates the objects without connecting them.
func newXRCConnection(from, at *side) *xrcConnection {
	x := &xrcConnection{from: newConnEnd(from), at: at, stubs: [2]*modelQP{{}, {}}}
	var err error
	x.domain, err = at.ctx.AllocXRCD()
	rig.Check(at, err)
	for range xrcQueues {
		x.queues = append(x.queues, newXRCQueue(at, x.domain))
	}
	other, err := at.ctx.AllocXRCD()
	rig.Check(at, err)
	x.apart = newXRCQueue(at, other).srq.Number()
	return x
}

func newXRCQueue(at *side, domain *verbs.XRCD) *xrcQueue {
	q := &xrcQueue{connEnd: newConnEnd(at)}
	var err error
	q.srq, err = q.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: connMaxRecvs, Type: verbs.SRQTypeXRC, XRCD: domain, CQ: q.cq})
	rig.Check(at, err)
	return q
}

// exchangeXRC posts receives to the SRQs and requests to the initiator, and compares the completions, memory and
// states.
func (s *side) exchangeXRC() {
	x := s.xrc
	if x.from.model.state != verbs.QPStateRTS || x.target.state != verbs.QPStateRTS || s.chance(30) {
		x.connect()
	}
	before := [2]map[string]uint64{s.modelDrops(), x.at.modelDrops()}
	for _, q := range x.queues {
		for range s.random.IntN(4) {
			q.postSRQRecv()
		}
	}
	tasks, wrs := x.tasks()
	s.note(s, "exchange by XRC: %+v", tasks)
	x.execute(tasks)
	s.want("post send by XRC", x.from.qp.PostSend(wrs), 0)
	s.pollEnds(append([]*connEnd{x.from}, x.allEnds()...))
	x.compare()
	for i, end := range []*connEnd{x.from, x.queues[0].connEnd} {
		end.excludeDrops(before[i])
	}
}

func (x *xrcConnection) allEnds() (list []*connEnd) {
	for _, q := range x.queues {
		list = append(list, q.connEnd)
	}
	return list
}

// connect connects the initiator and the target after resetting them or creating new ones.
func (x *xrcConnection) connect() {
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

// renew creates new queue pairs. The old target is destroyed when both of its handles are closed.
func (x *xrcConnection) renew() {
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

// postSRQRecv posts a receive to the queue.
func (q *xrcQueue) postSRQRecv() {
	if recv, some := q.receive(); some {
		q.want("post receive by XRC", q.srq.PostRecv([]verbs.RecvWR{{ID: recv.id, SGList: []verbs.SGE{q.sge(recv)}}}), 0)
	}
}

// tasks returns requests to the queues, at most as many as the initiator's send queue can contain.
func (x *xrcConnection) tasks() (tasks []xrcTask, wrs []verbs.SendWR) {
	s := x.from.side
	for range 1 + s.random.IntN(2) {
		i := s.random.IntN(xrcQueues)
		q, other := x.queues[i], x.queues[1-i]
		some, requests := x.from.tasks(q.connEnd)
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

// execute executes requests, and records the completions.
func (x *xrcConnection) execute(tasks []xrcTask) {
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

// do executes a request at its destination.
func (x *xrcConnection) do(task *xrcTask) verbs.WCStatus {
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

// note sets the state of the target after a request, and queues the events of an error for all handles.
func (x *xrcConnection) note(left *modelEnd, status verbs.WCStatus) verbs.WCStatus {
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

// compare compares the memory and the states of both ends after an exchange.
func (x *xrcConnection) compare() {
	for _, e := range append(x.allEnds(), x.from) {
		if !bytes.Equal(e.mr.Bytes(), e.model.memory) {
			e.differ("the memory of %s's XRC differs%s", e.name, firstDifference(e.mr.Bytes(), e.model.memory))
		}
	}
	for qp, want := range map[*verbs.QP]verbs.QPState{x.from.qp: x.from.model.state, x.handles[0]: x.target.state, x.handles[1]: x.target.state} {
		attr, _, err := qp.Query()
		if x.from.want("query XRC", err, 0); attr.State != want {
			x.from.differ("queue pair %v of XRC is in %v, the model has %v", qp.Number(), attr.State, want)
		}
	}
	x.from.seen["XRC target in "+x.target.state.String()]++
}

// stubOf returns the model of a target handle in events, or nil for other queue pairs.
func (x *xrcConnection) stubOf(qp *verbs.QP) *modelQP {
	for i, handle := range x.handles {
		if handle != nil && handle == qp {
			return x.stubs[i]
		}
	}
	return nil
}
