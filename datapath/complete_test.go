package datapath

import "testing"

// However many completions a burst has, its CQ is published once.
func TestPublishedOnceABurst(t *testing.T) {
	r := newRig(t)
	for i := range uint64(3) {
		r.postRecv(i, piece(0, 100))
		r.link.in = append(r.link.in, datagram(nil))
	}
	r.engine.Do(func() {
		r.engine.receive(listens)
		if n := len(r.engine.dirty); n != 1 {
			t.Errorf("%d queues to publish", n)
		}
	})
	if got := r.completions(); len(got) != 3 {
		t.Errorf("completions %+v", got)
	}
}
