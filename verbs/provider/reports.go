package provider

import "container/list"

// Reports is a queue of events in which each waits once: one that happens again moves to the end. So the limits of
// objects limit the queue, and the last event that is taken tells the present state. Its users lock it.
type Reports struct {
	waiting list.List // of EventReport
	places  map[EventReport]*list.Element
}

// Put appends an event, and removes the same event if it waits already.
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

// Oldest gives the oldest event, false if there is none.
func (q *Reports) Oldest() (r EventReport, ok bool) {
	oldest := q.waiting.Front()
	if oldest == nil {
		return r, false
	}
	return oldest.Value.(EventReport), true
}

// Take gives the oldest event and removes it, false if there is none.
func (q *Reports) Take() (r EventReport, ok bool) {
	if r, ok = q.Oldest(); ok {
		q.Drop(r)
	}
	return r, ok
}

// Drop removes an event if it waits.
func (q *Reports) Drop(r EventReport) {
	if place := q.places[r]; place != nil {
		q.waiting.Remove(place)
		delete(q.places, r)
	}
}

// Len is how many wait.
func (q *Reports) Len() int { return q.waiting.Len() }
