// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// modelCQ is a completion queue.
type modelCQ struct {
	card     *modelCard
	capacity int
	entries  []modelWC
	// kept are the first entries, which take up no room: when a queue pair is reset or destroyed,
	// the program's side takes all out of the queue, and drops those of the queue pair.
	kept    int
	overrun bool
	users   int // queues that complete to it
}

// modelWC is a completion in a CQ. Those of one wave may be polled in any order, except for the order
// within a work queue: when an overrun fails several queue pairs at once, there is no order among
// them. All others have waves of their own.
type modelWC struct {
	verbs.WC
	qp   *modelQP
	send bool
	wave int
}

// add puts a completion into the queue. One too many is an overrun: the queue takes nothing more,
// and its queue pairs fail, with an event each.
func (c *modelCQ) add(wc modelWC) bool {
	w := c.card.world
	if c.overrun {
		return false
	}
	if len(c.entries)-c.kept == c.capacity {
		c.overrun, w.overran = true, true
		w.wave++
		c.card.events[modelEvent{kind: verbs.EventCQErr, cq: c}] = true
		for _, q := range c.card.qps {
			if q.sendCQ == c || q.recvCQ == c {
				q.fail(true)
			}
		}
		return false
	}
	if !w.overran {
		w.wave++
	}
	wc.wave = w.wave
	c.entries = append(c.entries, wc)
	return true
}

// forget drops the completions of a queue pair.
func (c *modelCQ) forget(q *modelQP) {
	var rest []modelWC
	for _, wc := range c.entries {
		if wc.qp != q {
			rest = append(rest, wc)
		}
	}
	c.entries, c.kept = rest, len(rest)
}

// expect returns the expected result of a poll of n: the number, or an errno if there will be no more.
func (c *modelCQ) expect(n int) (count int, errno unix.Errno) {
	if count = min(n, len(c.entries)); len(c.entries) == 0 && c.overrun {
		errno = unix.EOVERFLOW
	}
	return count, errno
}

// take finds the next completion with an ID, and takes it out; false if it is not its turn.
func (c *modelCQ) take(id uint64) (wc modelWC, ok bool) {
	for i, wc := range c.entries {
		if wc.wave != c.entries[0].wave {
			break
		}
		if wc.ID != id {
			continue
		}
		for _, earlier := range c.entries[:i] {
			if earlier.qp == wc.qp && earlier.send == wc.send {
				return wc, false
			}
		}
		c.entries = append(c.entries[:i:i], c.entries[i+1:]...)
		c.kept = max(c.kept-1, 0)
		wc.qp.polled(wc.send)
		return wc, true
	}
	return wc, false
}

// polled frees a slot.
func (q *modelQP) polled(send bool) {
	if send {
		q.sendsDone--
	} else {
		q.recvsDone--
	}
}

// same compares a completion with the one that is due: of a failed request only ID, status and
// queue pair are valid, and of a send there is no more than its opcode.
func (wc *modelWC) same(got *verbs.WC, mtu int) bool {
	switch {
	case got.ID != wc.ID, got.Status != wc.Status, got.QPN != wc.QPN:
		return false
	case wc.Status == verbs.WCLocLenErr:
		return got.VendorErr == uint32(mtu)
	case wc.Status != verbs.WCSuccess:
		return true
	case wc.send:
		return got.Opcode == verbs.WCSend
	}
	return *got == wc.WC
}
