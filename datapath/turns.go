package datapath

// turns lists the queue pairs with work left, in the order of their turns. The links of the list
// are in the queue pairs themselves, so that it allocates nothing and removal is cheap.
type turns struct{ first, last *QP }

func (t *turns) empty() bool { return t.first == nil }

// add puts a queue pair at the end, unless it is in the list.
func (t *turns) add(qp *QP) {
	if qp.waiting {
		return
	}
	qp.waiting = true
	qp.Session.inTurn++
	if qp.before = t.last; t.last == nil {
		t.first = qp
	} else {
		t.last.behind = qp
	}
	t.last = qp
}

// next removes the first queue pair and returns it; nil if there is none.
func (t *turns) next() *QP {
	qp := t.first
	if qp != nil {
		t.remove(qp)
	}
	return qp
}

// remove takes a queue pair out of the list. It does nothing if the queue pair is not in it.
func (t *turns) remove(qp *QP) {
	if !qp.waiting {
		return
	}
	if qp.before == nil {
		t.first = qp.behind
	} else {
		qp.before.behind = qp.behind
	}
	if qp.behind == nil {
		t.last = qp.before
	} else {
		qp.behind.before = qp.before
	}
	qp.waiting, qp.before, qp.behind = false, nil, nil
	qp.Session.inTurn--
}
