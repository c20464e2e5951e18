package datapath

import (
	"slices"
	"testing"
)

// Any queue pair can leave, wherever it stands: the others keep their order, and whoever is
// added later comes last. One that has no turn takes nobody's with it.
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
