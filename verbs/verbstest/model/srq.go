// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// modelSRQ is a shared receive queue. Its receives use memory of its own PD. A slot is free as soon as a queue pair has
// consumed its receive.
type modelSRQ struct {
	card          *modelCard
	pd            *modelPD
	maxWR, maxSGE int
	limit         int // 0 if not armed
	recvs         []*modelRecv
	users         int // queue pairs
}

// postRecv queues requests up to the first invalid one, like that of a queue pair.
func (q *modelSRQ) postRecv(list []*modelRecv) (bad int, errno unix.Errno) {
	for i, r := range list {
		switch {
		case len(r.sges) > q.maxSGE:
			return i, unix.EINVAL
		case len(q.recvs) == q.maxWR:
			return i, unix.ENOMEM
		}
		q.recvs = append(q.recvs, r)
	}
	return -1, 0
}

// mayModify reports whether a size and a limit are valid. A negative value means unchanged. granted is the size that
// the Provider grants.
func (q *modelSRQ) mayModify(size, granted, limit int) bool {
	if limit < 0 {
		limit = q.limit
	}
	if size < 0 {
		return limit <= q.maxWR
	}
	return size > 0 && len(q.recvs) <= size && limit <= granted
}

// check queues the limit event and disarms the limit if fewer receives are queued.
func (q *modelSRQ) check() {
	if len(q.recvs) < q.limit {
		q.limit = 0
		q.card.events[modelEvent{kind: verbs.EventSRQLimitReached, srq: q}] = true
	}
}

// nextRecv returns the receive for the next message without removing it, or nil.
func (q *modelQP) nextRecv() *modelRecv {
	list := q.recvs
	if q.srq != nil {
		list = q.srq.recvs
	}
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// dequeueRecv removes and returns the receive for the next message.
func (q *modelQP) dequeueRecv() *modelRecv {
	r := q.nextRecv()
	if q.srq == nil {
		q.recvs = q.recvs[1:]
	} else {
		q.srq.recvs = q.srq.recvs[1:]
		q.srq.check()
	}
	return r
}

// toErr moves a queue pair to ERR. The receives of an SRQ stay queued, and an event reports that the queue pair will
// not consume more of them.
func (q *modelQP) toErr() {
	if q.state != verbs.QPStateErr && q.srq != nil {
		q.card.events[modelEvent{kind: verbs.EventQPLastWQEReached, qp: q}] = true
	}
	q.state = verbs.QPStateErr
}
