// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// Steps that change and query queue pairs.

// qkey returns TestQKey most of the time, so that most messages have the right one.
func (d dice) qkey() verbs.QKey {
	if d.chance(12) {
		return rig.TestQKey + 1
	}
	return rig.TestQKey
}

// advance changes a queue pair to the next state towards RTS.
func (s *side) advance() {
	if q := one(s, s.qps); q != nil && !q.closed {
		s.advanceQP(q)
	}
}

func (s *side) advanceQP(q *playedQP) {
	state := q.model.state
	switch state {
	case verbs.QPStateRTS:
		return
	case verbs.QPStateSQD, verbs.QPStateSQE:
		state = verbs.QPStateRTS
	case verbs.QPStateErr:
		state = verbs.QPStateReset
	default:
		state++
	}
	change := modelChanges[[2]verbs.QPState{q.model.state, state}]
	s.change(q, verbs.QPAttr{State: state, Port: 1, QKey: s.dice().qkey(), SQPSN: verbs.PSN(s.random.Uint32()) & 0xFFFFFF}, verbs.QPAttrState|change.required)
}

var modelBits = []verbs.QPAttrMask{
	verbs.QPAttrState, verbs.QPAttrCurState, verbs.QPAttrEnSQDAsyncNotify, verbs.QPAttrPKeyIndex, verbs.QPAttrPort,
	verbs.QPAttrQKey, verbs.QPAttrSQPSN, verbs.QPAttrCap, 1 << 3, 1 << 31,
}

// modify changes a queue pair to any state, with the required attributes, sometimes with more or fewer.
func (s *side) modify() {
	q := one(s, s.qps)
	if q == nil {
		return
	}
	attr := verbs.QPAttr{State: verbs.QPState(s.random.IntN(8)), CurState: q.model.state, Port: 1, QKey: s.dice().qkey(), SQPSN: verbs.PSN(s.random.Uint32()) & 0xFFFFFF, EnSQDAsyncNotify: s.chance(2)}
	if s.chance(2) {
		attr.State = verbs.QPStateSQD // SQD is reached from RTS only
	}
	change := modelChanges[[2]verbs.QPState{q.model.state, attr.State}]
	mask := verbs.QPAttrState | change.required
	for _, bit := range modelBits {
		if s.chance(12) || change.optional&bit != 0 && s.chance(2) {
			mask ^= bit
		}
	}
	if s.chance(8) {
		s.dice().spoilAttr(&attr)
	}
	s.change(q, attr, mask)
}

func (d dice) spoilAttr(attr *verbs.QPAttr) {
	switch d.random.IntN(4) {
	case 0:
		attr.CurState = verbs.QPState(d.random.IntN(8))
	case 1:
		attr.Port = 2
	case 2:
		attr.PKeyIndex = 1
	case 3:
		attr.SQPSN = 1 << 24
	}
}

// expectedAttr returns the attributes that modify returns in a state: those in the mask with their current values.
func expectedAttr(attr verbs.QPAttr, mask verbs.QPAttrMask, state verbs.QPState) verbs.QPAttr {
	if mask&verbs.QPAttrState != 0 {
		attr.State = state
	}
	if mask&verbs.QPAttrCurState != 0 {
		attr.CurState = state
	}
	return attr
}

func (s *side) change(q *playedQP, attr verbs.QPAttr, mask verbs.QPAttrMask) {
	s.note(s, "modify %s (%d sends, %d receives) to %v with %v", q, len(q.model.sends), len(q.model.recvs), attr.State, mask)
	now := attr
	err := q.Modify(&now, mask)
	want := unix.EINVAL
	if !q.closed {
		want = q.model.modify(&attr, mask)
	}
	s.want("modify", err, want)
	ok := want == 0
	at := q.model.state
	if ok {
		s.seen["state "+at.String()]++
		s.finishStep(q)
	}
	// Waiting requests may fail immediately and change the state.
	if !ok && now != attr || ok && now != expectedAttr(attr, mask, at) && now != expectedAttr(attr, mask, q.model.state) {
		s.differ("modify returned %+v, the model has %+v", now, expectedAttr(attr, mask, at))
	}
}

// query compares the attributes of a queue pair.
func (s *side) query() {
	q := one(s, s.qps)
	if q == nil {
		return
	}
	s.note(s, "query %s", q)
	s.compareQP(q)
}

func (s *side) compareQP(q *playedQP) {
	attr, _, err := q.Query()
	s.wantIf("query", err, !q.closed)
	if q.closed {
		return
	}
	m := q.model
	s.seen["state "+m.state.String()]++
	if attr.State != m.state || attr.CurState != m.state || attr.QKey != m.qkey || attr.Port != m.port || attr.SQPSN != m.psn {
		s.differ("query: %+v, the model has %v, Q_Key %v, port %d, PSN %v", attr, m.state, m.qkey, m.port, m.psn)
	}
}
