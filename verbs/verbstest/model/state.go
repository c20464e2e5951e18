// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// modelChange contains the required and the optional attributes of a state transition.
type modelChange struct{ required, optional verbs.QPAttrMask }

const (
	pkeyAndQKey    = verbs.QPAttrPKeyIndex | verbs.QPAttrQKey
	currentAndQKey = verbs.QPAttrCurState | verbs.QPAttrQKey
)

// modelChanges contains the state transitions of UD (IBA 11.2.5.2), except those to RESET from any state and to ERR
// from any state except RESET.
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

// modify sets the attributes in the mask, or returns an errno and changes nothing if they are invalid.
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
	if mask&verbs.QPAttrEnSQDAsyncNotify != 0 && attr.EnSQDAsyncNotify { // the model has no sends in progress
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

// overrun reports whether a CQ of the queue pair is overrun, so that the queue pair cannot leave RESET again.
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

// fits reports whether the attributes in the mask are valid for this queue pair.
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

// run executes the requests of a queue pair in RTS, and flushes them in SQE and ERR.
func (q *modelQP) run() {
	for len(q.sends) > 0 {
		switch q.state {
		case verbs.QPStateRTS:
			q.execute(q.dequeueSend())
		case verbs.QPStateSQE, verbs.QPStateErr:
			q.completeSend(q.dequeueSend(), verbs.WCWRFlushErr)
		default: // requests wait in SQD
			return
		}
	}
	for q.state == verbs.QPStateErr && len(q.recvs) > 0 { // receives of an SRQ are not flushed
		q.completeRecv(modelWC{WC: verbs.WC{ID: q.dequeueRecv().id, Status: verbs.WCWRFlushErr}})
	}
}

// flushFailed flushes the queue pairs that an overrun has failed.
func (w *modelWorld) flushFailed() {
	for len(w.failed) > 0 {
		q := w.failed[0]
		w.failed = w.failed[1:]
		q.run()
	}
}

func (q *modelQP) dequeueSend() *modelSend {
	r := q.sends[0]
	q.sends = q.sends[1:]
	return r
}
