package hca

import (
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// TestCloseDoesNotWaitForADeadPeer: what can leave has left when Close returns, and no more is waited for: not
// for the answer of a peer that is dead. It was some tenths of a second each.
func TestCloseDoesNotWaitForADeadPeer(t *testing.T) {
	w := newWirePair(t)
	s := w.a
	var all []*verbs.QP
	const connections, posted = 1500, 2
	before := s.sent()
	for range connections {
		qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap()})
		check(t, err)
		check(t, qp.Connect(&verbs.QPAttr{
			AHAttr: *s.route("10.0.0.2"), DestQPN: 5, PathMTU: wire.MTU256, Timeout: 20, RetryCnt: 7, RNRRetry: 7,
		}))
		check(t, qp.PostSend(make([]verbs.SendWR, posted)))
		all = append(all, qp)
	}
	start := time.Now()
	for _, qp := range all {
		check(t, qp.Close())
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if sent := s.sent() - before; sent < connections*posted {
		t.Errorf("%d packets were sent before, of %d", sent, connections*posted)
	}
}

// sent is how many packets the card has sent.
func (s *station) sent() uint64 {
	s.Helper()
	all, err := s.device.Statistics()
	check(s, err)
	return all.Engine.Sent
}
