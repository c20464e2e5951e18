// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// readPair is a queue pair that implements only Remote, for READs.
type readPair struct {
	QueuePair
	revoked bool
	failed  ib.QPState
}

func (q *readPair) Remote(_ ib.RKey, _ uint64, length uint32, _ ib.AccessFlags) ([]byte, bool) {
	return make([]byte, length), !q.revoked
}

func (q *readPair) Credits() wire.Syndrome  { return wire.SyndromeACK }
func (q *readPair) Fail(state ib.QPState)   { q.failed = state }
func (q *readPair) Note(event ib.EventType) {}

// TestReadAfterItsKeyIsRevoked: a READ whose response was never completely sent is refused, and the queue pair fails. A
// repeated READ is ignored: the peer may have received the first response, and the program may have revoked the key for
// that reason.
func TestReadAfterItsKeyIsRevoked(t *testing.T) {
	for _, again := range []bool{false, true} {
		q := &readPair{}
		r := Responder{Attr: &Attr{Service: wire.ServiceRC, MTU: 3}, QP: q}
		r.responses.add(&response{psn: 10, kind: wire.MeansRead, packets: 1, length: 100}, 4)
		answer := func() Reason {
			var p Packet
			if step := r.Next(0, &p); step != Ready {
				t.Fatalf("again: %v: nothing to send", again)
			}
			return r.Fill(&p, make([]byte, p.Length))
		}
		if again {
			if reason := answer(); reason != Taken {
				t.Fatal(reason)
			}
			r.responses.find(10).sent = 0
			r.responses.pending++
		}
		q.revoked = true
		if reason := answer(); reason != RemoteAccess {
			t.Errorf("again: %v: %v", again, reason)
		}
		if (q.failed == ib.QPStateErr) == again || r.Owes() == again || r.OwesData() {
			t.Errorf("again: %v: state %v, owes %v, %v", again, q.failed, r.Owes(), r.OwesData())
		}
	}
}

// TestPeerAsksForTooMuch: the number of kept READs and atomics, including those with complete responses, is limited to
// the peer's maximum number of outstanding ones.
func TestPeerAsksForTooMuch(t *testing.T) {
	const most = 4
	var r responses
	for i := range most {
		if !r.add(&response{packets: 2}, most) {
			t.Fatalf("request %d is refused", i)
		}
	}
	for range 3 {
		if r.add(&response{packets: 2}, most) {
			t.Fatal("one more was accepted")
		}
	}
	r.kept[0].sent = 1
	if r.add(&response{packets: 2}, most) {
		t.Error("one more was accepted while the oldest response is being repeated")
	}
	r.kept[0].sent, r.kept[0].whole = 2, true
	if !r.add(&response{packets: 2}, most) || r.add(&response{packets: 2}, most) || len(r.kept) != most {
		t.Errorf("after the oldest response: %d are kept", len(r.kept))
	}
}

// Responses are kept up to the peer's maximum number of outstanding requests, and additionally while they are unsent.
func TestResponsesAreKept(t *testing.T) {
	var r responses
	for i := range 4 {
		r.add(&response{psn: wire.PSN(10 * i), packets: 2 - uint32(i)/3}, 6) // the last has one packet
	}
	for _, psn := range []wire.PSN{0, 10} {
		one := r.find(psn + 1)
		one.sent, one.whole = 2, true
		r.pending--
	}
	for _, row := range []struct{ most, kept int }{{6, 6}, {3, 3}, {1, 2}, {5, 5}, {2, 2}} {
		r.keep(row.most)
		if first := r.first(); len(r.kept) != row.kept || r.pending != 2 || first == nil || first.psn != 20 || r.newest(0).psn != 30 {
			t.Errorf("limit %d: %d are kept, %d pending, first %+v", row.most, len(r.kept), r.pending, first)
		}
		for _, psn := range []wire.PSN{20, 21, 30} {
			if one := r.find(psn); one == nil || one.psn != psn/10*10 {
				t.Errorf("limit %d: PSN %d is of %+v", row.most, psn, one)
			}
		}
	}
	if r.find(31) != nil || r.find(19) != nil || r.find(0) != nil {
		t.Error("found a response without a request")
	}
	r.first().sent, r.first().whole = 1, true // it is repeated
	if !r.add(&response{psn: 40, packets: 1}, 2) || r.pending != 2 || r.first().psn != 30 {
		t.Errorf("%d are pending, first %+v", r.pending, r.first())
	}
}
