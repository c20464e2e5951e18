package datapath

import "slices"

// turns orders the queue pairs with work left. Sessions take turns, and within a session its queue
// pairs do: what one program gets does not depend on how many queue pairs another one has. The
// links of the lists are in sessions and queue pairs themselves, so that nothing is allocated.
type turns struct {
	first, last *Session // with queue pairs in turn, or that have had some
	count       int      // queue pairs
}

func (t *turns) empty() bool { return t.count == 0 }

// add puts a queue pair behind the others of its session, unless it is in turn, or the session has ended.
func (t *turns) add(qp *QP) {
	s := qp.Session
	if qp.waiting || s.removed {
		return
	}
	s.inTurn.add(qp)
	t.count++
	t.addSession(s)
}

// addSession puts a session at the end, unless it is in the list.
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

// next removes the queue pair whose turn it is and returns it; nil if there is none.
func (t *turns) next() *QP {
	for t.first != nil {
		s := t.first
		if t.first = s.behind; t.first == nil {
			t.last = nil
		}
		s.waiting, s.behind = false, nil
		qp := s.inTurn.first
		if qp == nil {
			continue // they have been removed meanwhile
		}
		t.remove(qp)
		if s.inTurn.first != nil {
			t.addSession(s)
		}
		return qp
	}
	return nil
}

// remove takes a queue pair out. It does nothing if the queue pair is not in turn.
func (t *turns) remove(qp *QP) {
	if qp.waiting {
		qp.Session.inTurn.remove(qp)
		t.count--
	}
}

// qpList is a list of queue pairs.
type qpList struct{ first, last *QP }

// add puts a queue pair at the end.
func (l *qpList) add(qp *QP) {
	qp.waiting = true
	if qp.before = l.last; l.last == nil {
		l.first = qp
	} else {
		l.last.behind = qp
	}
	l.last = qp
}

// remove takes a queue pair out of the list that it is in.
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

// accepting are queue pairs that have something to acknowledge in the next round: a program that answers a message
// at once has its answer and the acknowledgement leave together.
type accepting []*QP

func (a *accepting) add(qp *QP) { *a = append(*a, qp) }

// takeTurns gives all a turn.
func (a *accepting) takeTurns(t *turns) {
	for _, qp := range *a {
		t.add(qp)
	}
	clear(*a)
	*a = (*a)[:0]
}

// remove is for a queue pair that is removed.
func (a *accepting) remove(qp *QP) {
	*a = slices.DeleteFunc(*a, func(one *QP) bool { return one == qp })
}
