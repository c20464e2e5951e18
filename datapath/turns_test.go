// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"
	"testing"
)

// Any queue pair can be removed: the others keep their order, and one that is added later is last. Removing a queue
// pair that is not in the list has no effect.
func TestTurns(t *testing.T) {
	for leaves, want := range [][]int{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2, 3}} {
		var list turns
		qps := make([]*QP, 4)
		for i := range qps {
			qps[i] = &QP{Session: new(Session), DoorbellIndex: uint32(i)}
		}
		for _, qp := range []*QP{qps[0], qps[1], qps[1], qps[2]} {
			list.add(qp)
		}
		list.remove(qps[leaves])
		list.add(qps[3])
		var got []int
		for qp := list.next(); qp != nil && len(got) < 2*len(qps); qp = list.next() {
			got = append(got, int(qp.DoorbellIndex))
		}
		if !slices.Equal(got, want) || !list.empty() {
			t.Errorf("%d leaves: %v, want %v, empty %v", leaves, got, want, list.empty())
		}
	}
}

// Sessions take turns, however many queue pairs each has; so do the queue pairs within a session.
func TestSessionsTakeTurns(t *testing.T) {
	var list turns
	many, few := new(Session), new(Session)
	for i := range 4 {
		list.add(&QP{Session: many, DoorbellIndex: uint32(i)})
	}
	list.add(&QP{Session: few, DoorbellIndex: 100})
	var got []uint32
	for range 8 {
		qp := list.next()
		got = append(got, qp.DoorbellIndex)
		list.add(qp) // it has more work
	}
	if want := []uint32{0, 100, 1, 100, 2, 100, 3, 100}; !slices.Equal(got, want) {
		t.Errorf("got turns of %v, want %v", got, want)
	}
}

// A session whose queue pairs have all been removed gets no turn. It gets turns again when queue pairs are added.
func TestTurnsOfAnEmptySession(t *testing.T) {
	var list turns
	s := new(Session)
	qp := &QP{Session: s}
	list.add(qp)
	list.remove(qp)
	if !list.empty() || list.next() != nil {
		t.Error("got a turn of no queue pair")
	}
	list.add(qp)
	if list.empty() || list.next() != qp || !list.empty() {
		t.Error("got no turn for a queue pair that was added again")
	}
}
