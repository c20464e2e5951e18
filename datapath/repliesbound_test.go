package datapath

import "testing"

// TestPeerAsksForTooMuch: of a peer's READs and atomics as many are kept as it may have outstanding, those that
// have been answered among them.
func TestPeerAsksForTooMuch(t *testing.T) {
	const most = 4
	var r replies
	for i := range most {
		if !r.add(&reply{packets: 2}, most) {
			t.Fatalf("request %d is refused", i)
		}
	}
	for range 3 {
		if r.add(&reply{packets: 2}, most) {
			t.Fatal("one more is taken")
		}
	}
	r.kept[0].sent = 1
	if r.add(&reply{packets: 2}, most) {
		t.Error("one more is taken while the oldest is being answered")
	}
	r.kept[0].sent, r.kept[0].whole = 2, true
	if !r.add(&reply{packets: 2}, most) || r.add(&reply{packets: 2}, most) || len(r.kept) != most {
		t.Errorf("when the oldest was answered: %d are kept", len(r.kept))
	}
}
