// SPDX-License-Identifier: Apache-2.0

package provider

import "container/list"

// Reports is a queue that contains each event at most once: an event that occurs again moves to the end. Therefore the
// limits of objects limit the queue, and the last event dequeued reflects the current state. Its users lock it.
type Reports struct {
	waiting list.List // of EventReport
	places  map[EventReport]*list.Element
}

// Put appends an event, and removes the same event if it is already queued.
func (q *Reports) Put(r EventReport) {
	if place := q.places[r]; place != nil {
		q.waiting.MoveToBack(place)
		return
	}
	if q.places == nil {
		q.places = map[EventReport]*list.Element{}
	}
	q.places[r] = q.waiting.PushBack(r)
}

// Oldest returns the oldest event; false if the queue is empty.
func (q *Reports) Oldest() (r EventReport, ok bool) {
	oldest := q.waiting.Front()
	if oldest == nil {
		return r, false
	}
	return oldest.Value.(EventReport), true
}

// Take removes and returns the oldest event; false if the queue is empty.
func (q *Reports) Take() (r EventReport, ok bool) {
	if r, ok = q.Oldest(); ok {
		q.Drop(r)
	}
	return r, ok
}

// Drop removes an event if it is queued.
func (q *Reports) Drop(r EventReport) {
	if place := q.places[r]; place != nil {
		q.waiting.Remove(place)
		delete(q.places, r)
	}
}

// Len returns the number of queued events.
func (q *Reports) Len() int { return q.waiting.Len() }
