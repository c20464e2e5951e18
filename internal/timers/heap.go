// SPDX-License-Identifier: Apache-2.0

package timers

import "time"

// Timer is a timer; Of is its owner. The zero Timer is stopped. It must not be copied while it is running.
type Timer[T any] struct {
	Of    T
	at    time.Time
	place int // in the heap, from 1; 0 when stopped
}

// Runs reports whether the timer is running.
func (t *Timer[T]) Runs() bool { return t.place != 0 }

// At returns the time at which the timer expires, or was last set to expire.
func (t *Timer[T]) At() time.Time { return t.at }

// Heap holds the running timers. It is a binary heap: no timer is earlier than its parent, which is at half its place.
type Heap[T any] []*Timer[T]

// Set starts or resets a timer.
func (h *Heap[T]) Set(t *Timer[T], at time.Time) {
	t.at = at
	if t.place == 0 {
		*h = append(*h, t)
		t.place = len(*h)
	}
	if !h.down(t.place) {
		h.up(t.place)
	}
}

// Stop stops a timer, if it is running.
func (h *Heap[T]) Stop(t *Timer[T]) {
	place, last := t.place, len(*h)
	if place == 0 {
		return
	}
	h.swap(place, last)
	(*h)[last-1] = nil
	*h = (*h)[:last-1]
	if t.place = 0; place < last && !h.down(place) {
		h.up(place)
	}
}

// First returns the earliest timer; nil if none is running.
func (h Heap[T]) First() *Timer[T] {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}

// Due stops and returns the earliest timer; nil if its time has not come.
func (h *Heap[T]) Due(now time.Time) *Timer[T] {
	first := h.First()
	if first == nil || first.at.After(now) {
		return nil
	}
	h.Stop(first)
	return first
}

func (h Heap[T]) before(a, b int) bool { return h[a-1].at.Before(h[b-1].at) }

func (h Heap[T]) swap(a, b int) {
	h[a-1], h[b-1] = h[b-1], h[a-1]
	h[a-1].place, h[b-1].place = a, b
}

// up moves a timer up until none above it is later.
func (h Heap[T]) up(place int) {
	for ; place > 1 && h.before(place, place/2); place /= 2 {
		h.swap(place, place/2)
	}
}

// down moves a timer down until none below it is earlier, and reports whether it moved.
func (h Heap[T]) down(place int) (moved bool) {
	for {
		child := 2 * place
		if child < len(h) && h.before(child+1, child) {
			child++
		}
		if child > len(h) || !h.before(child, place) {
			return moved
		}
		h.swap(place, child)
		place, moved = child, true
	}
}
