// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
)

// TestCloseDoesNotWaitForADeadPeer: Close sends the packets that can be sent and does not wait for anything else, such
// as the responses of a dead peer. (It once took some tenths of a second per connection.)
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
	if took := time.Since(start); took > waittest.Limit {
		t.Errorf("Close took %v", took)
	}
	if sent := s.sent() - before; sent < connections*posted {
		t.Errorf("%d of %d packets were sent", sent, connections*posted)
	}
}

// sent returns the number of packets that the card has sent.
func (s *station) sent() uint64 {
	s.Helper()
	all, err := s.device.Statistics()
	check(s, err)
	return all.Engine.Sent
}
