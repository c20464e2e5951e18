// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
)

// Sessions are opened and closed while others work; nothing is left behind, and no message is lost.
func TestSessionsUnderTraffic(t *testing.T) {
	w := newWirePair(t)
	before := w.a.remains()
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for ctx.Err() == nil {
				s := w.a.another(SessionConfig{Memory: &countedMemory{live: map[*byte]int{}}})
				s.receive(0)
				s.post(s.send(1, s.ah("10.0.0.1"), s, s.piece(1, 10)))
				s.wait(2)
				check(t, s.ctx.Close())
			}
		})
	}
	ah := w.a.ah("10.0.0.2")
	for i := range 2000 {
		w.b.receive(i % 8)
		w.a.post(w.a.send(uint64(i), ah, w.b, w.a.piece(0, 10)))
		if got := append(w.a.wait(1), w.b.wait(1)...); got[0].ID != uint64(i) || slices.ContainsFunc(got, func(wc verbs.WC) bool { return wc.Err() != nil }) {
			t.Fatalf("message %d: %+v", i, got)
		}
	}
	stop()
	group.Wait()
	after := w.a.remains()
	if after.paths--; after != before {
		t.Errorf("got %+v, want %+v", after, before)
	}
}

// Sessions that close while the card closes are each freed exactly once.
func TestSessionsCloseWithTheCard(t *testing.T) {
	for range 20 {
		w := newWirePair(t)
		source := &countedMemory{live: map[*byte]int{}}
		var group sync.WaitGroup
		for range 8 {
			s := w.a.another(SessionConfig{Memory: source})
			check(t, s.qp.AttachMcast(gid(groupV4), 0))
			s.ah("10.0.0.2")
			group.Go(func() { check(t, s.ctx.Close()) })
		}
		check(t, w.a.device.Close())
		group.Wait()
		if n := source.count(); n != 0 {
			t.Fatalf("%d pieces of memory were not freed", n)
		}
	}
}
