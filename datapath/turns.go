// SPDX-License-Identifier: Apache-2.0

package datapath

import "slices"

// turns schedules the queue pairs with work left: round-robin among sessions, and round-robin among the queue pairs of
// a session. A program's share therefore does not depend on the number of queue pairs of other programs. The links of
// the lists are fields of the sessions and queue pairs, so that nothing is allocated.
type turns struct {
	first, last *Session // listed sessions; the queue pairs of some may have been removed since
	count       int      // number of listed queue pairs
}

func (t *turns) empty() bool { return t.count == 0 }

// add appends a queue pair to the list of its session, unless it is listed already or the session has been removed.
func (t *turns) add(qp *QP) {
	s := qp.Session
	if qp.waiting || s.removed {
		return
	}
	s.inTurn.add(qp)
	t.count++
	t.addSession(s)
}

// addSession appends a session, unless it is listed already.
func (t *turns) addSession(s *Session) {
	if s.waiting {
		return
	}
	if s.waiting = true; t.last == nil {
		t.first = s
	} else {
		t.last.behind = s
	}
	t.last = s
}

// next removes and returns the queue pair whose turn it is; nil if no queue pair is listed.
func (t *turns) next() *QP {
	for t.first != nil {
		s := t.first
		if t.first = s.behind; t.first == nil {
			t.last = nil
		}
		s.waiting, s.behind = false, nil
		qp := s.inTurn.first
		if qp == nil {
			continue // all its queue pairs have been removed
		}
		t.remove(qp)
		if s.inTurn.first != nil {
			t.addSession(s)
		}
		return qp
	}
	return nil
}

// remove removes a queue pair, if it is listed.
func (t *turns) remove(qp *QP) {
	if qp.waiting {
		qp.Session.inTurn.remove(qp)
		t.count--
	}
}

// qpList is a list of queue pairs.
type qpList struct{ first, last *QP }

func (l *qpList) add(qp *QP) {
	qp.waiting = true
	if qp.before = l.last; l.last == nil {
		l.first = qp
	} else {
		l.last.behind = qp
	}
	l.last = qp
}

// remove removes a queue pair from the list that it is in.
func (l *qpList) remove(qp *QP) {
	if qp.before == nil {
		l.first = qp.behind
	} else {
		qp.before.behind = qp.behind
	}
	if qp.behind == nil {
		l.last = qp.before
	} else {
		qp.behind.before = qp.before
	}
	qp.waiting, qp.before, qp.behind = false, nil, nil
}

// accepting is a list of queue pairs that acknowledge requests in the next round. Until then the program can post its
// reply, which is then sent in the same burst as the acknowledgement.
type accepting []*QP

func (a *accepting) add(qp *QP) { *a = append(*a, qp) }

// takeTurns moves all queue pairs to the turns.
func (a *accepting) takeTurns(t *turns) {
	for _, qp := range *a {
		t.add(qp)
	}
	clear(*a)
	*a = (*a)[:0]
}

// remove removes a queue pair that is being destroyed.
func (a *accepting) remove(qp *QP) {
	*a = slices.DeleteFunc(*a, func(one *QP) bool { return one == qp })
}
