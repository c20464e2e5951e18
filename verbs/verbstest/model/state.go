// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// modelChange contains the required and the optional attributes of a change of state.
type modelChange struct{ required, optional verbs.QPAttrMask }

const (
	pkeyAndQKey    = verbs.QPAttrPKeyIndex | verbs.QPAttrQKey
	currentAndQKey = verbs.QPAttrCurState | verbs.QPAttrQKey
)

// modelChanges are the changes of state of datagrams (IBA 11.2.5.2), except those to RESET, which
// all states have, and to ERR, which all except RESET have.
var modelChanges = map[[2]verbs.QPState]modelChange{
	{verbs.QPStateReset, verbs.QPStateInit}: {required: pkeyAndQKey | verbs.QPAttrPort},
	{verbs.QPStateInit, verbs.QPStateInit}:  {optional: pkeyAndQKey | verbs.QPAttrPort},
	{verbs.QPStateInit, verbs.QPStateRTR}:   {optional: pkeyAndQKey},
	{verbs.QPStateRTR, verbs.QPStateRTS}:    {required: verbs.QPAttrSQPSN, optional: currentAndQKey},
	{verbs.QPStateRTS, verbs.QPStateRTS}:    {optional: currentAndQKey},
	{verbs.QPStateRTS, verbs.QPStateSQD}:    {optional: verbs.QPAttrEnSQDAsyncNotify},
	{verbs.QPStateSQD, verbs.QPStateRTS}:    {optional: currentAndQKey},
	{verbs.QPStateSQD, verbs.QPStateSQD}:    {optional: pkeyAndQKey},
	{verbs.QPStateSQE, verbs.QPStateRTS}:    {optional: currentAndQKey},
}

// modify changes the attributes in the mask; an errno, and nothing has changed, if that cannot be.
func (q *modelQP) modify(attr *verbs.QPAttr, mask verbs.QPAttrMask) unix.Errno {
	next := q.state
	if mask&verbs.QPAttrState != 0 {
		next = attr.State
	}
	if !q.mayChange(next, mask) || !q.fits(attr, mask) {
		return unix.EINVAL
	}
	if q.state == verbs.QPStateReset && next == verbs.QPStateInit && q.overrun() {
		return unix.EOVERFLOW
	}
	if mask&verbs.QPAttrQKey != 0 {
		q.qkey = attr.QKey
	}
	if mask&verbs.QPAttrPort != 0 {
		q.port = attr.Port
	}
	if mask&verbs.QPAttrSQPSN != 0 {
		q.psn = attr.SQPSN
	}
	if mask&verbs.QPAttrEnSQDAsyncNotify != 0 && attr.EnSQDAsyncNotify { // nothing is being sent any more
		q.card.events[modelEvent{kind: verbs.EventSQDrained, qp: q}] = true
	}
	if next == verbs.QPStateErr {
		q.toErr()
	}
	q.state = next
	if next == verbs.QPStateReset && mask&verbs.QPAttrState != 0 {
		q.qkey, q.port, q.psn = 0, 0, 0
		q.empty()
	}
	return 0
}

// overrun reports whether a CQ of the queue pair was overrun: then it cannot be reused.
func (q *modelQP) overrun() bool { return q.sendCQ.overrun || q.recvCQ.overrun }

func (q *modelQP) mayChange(next verbs.QPState, mask verbs.QPAttrMask) bool {
	change, listed := modelChanges[[2]verbs.QPState{q.state, next}]
	toError := next == verbs.QPStateErr && q.state != verbs.QPStateReset
	if !listed && next != verbs.QPStateReset && !toError {
		return false
	}
	mask &^= verbs.QPAttrState
	return mask&change.required == change.required && mask&^(change.required|change.optional) == 0
}

// fits reports whether this queue pair can have the values in the mask.
func (q *modelQP) fits(attr *verbs.QPAttr, mask verbs.QPAttrMask) bool {
	switch {
	case mask&verbs.QPAttrCurState != 0 && attr.CurState != q.state,
		mask&verbs.QPAttrPort != 0 && attr.Port != 1,
		mask&verbs.QPAttrPKeyIndex != 0 && attr.PKeyIndex != 0,
		mask&verbs.QPAttrSQPSN != 0 && attr.SQPSN > 0xFFFFFF:
		return false
	}
	return true
}

// run does the card's work for a queue pair: send in RTS, flush in SQE and ERR.
func (q *modelQP) run() {
	for len(q.sends) > 0 {
		switch q.state {
		case verbs.QPStateRTS:
			q.carryOut(q.takeSend())
		case verbs.QPStateSQE, verbs.QPStateErr:
			q.completeSend(q.takeSend(), verbs.WCWRFlushErr)
		default: // SQD holds requests back
			return
		}
	}
	for q.state == verbs.QPStateErr && len(q.recvs) > 0 { // its own: an SRQ keeps its
		q.completeRecv(modelWC{WC: verbs.WC{ID: q.takeRecv().id, Status: verbs.WCWRFlushErr}})
	}
}

// settle does the remaining work after a request or a change: queue pairs that an
// overrun failed are flushed.
func (w *modelWorld) settle() {
	for len(w.failed) > 0 {
		q := w.failed[0]
		w.failed = w.failed[1:]
		q.run()
	}
}

func (q *modelQP) takeSend() *modelSend {
	r := q.sends[0]
	q.sends = q.sends[1:]
	return r
}
