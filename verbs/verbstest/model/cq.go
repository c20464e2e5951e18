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
	// kept is the number of first entries that do not count towards the capacity. When a queue pair is reset or
	// destroyed, the library moves all completions out of the card's queue, and discards those of the queue pair.
	kept    int
	overrun bool
	users   int // work queues that complete to the CQ
}

// modelWC is a completion in a CQ. Completions of the same wave can be polled in any order that keeps the order of each
// work queue: when an overrun fails several queue pairs at once, these are flushed in no particular order. Each step
// has its own wave.
type modelWC struct {
	verbs.WC
	qp   *modelQP
	send bool
	wave int
}

// add adds a completion to the queue. If the queue is full, it is overrun: it accepts no more completions, and each of
// its queue pairs fails with an event.
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

// forget discards the completions of a queue pair.
func (c *modelCQ) forget(q *modelQP) {
	var rest []modelWC
	for _, wc := range c.entries {
		if wc.qp != q {
			rest = append(rest, wc)
		}
	}
	c.entries, c.kept = rest, len(rest)
}

// expect returns the expected result of polling n completions: their number, or EOVERFLOW if an overrun queue is empty.
func (c *modelCQ) expect(n int) (count int, errno unix.Errno) {
	if count = min(n, len(c.entries)); len(c.entries) == 0 && c.overrun {
		errno = unix.EOVERFLOW
	}
	return count, errno
}

// dequeue removes and returns the completion with an ID, or returns false if it must not be polled yet.
func (c *modelCQ) dequeue(id uint64) (wc modelWC, ok bool) {
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

// same compares a polled completion with the expected one. Only ID, status and queue pair of a failed request are
// valid, and the opcode of a send.
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
