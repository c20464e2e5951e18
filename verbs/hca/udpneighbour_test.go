// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

// UDP sockets do not report that a neighbour does not respond: a handle is created, and a datagram is sent. A reliable
// connection detects it.
func TestNeighbourIsNotKnownOverUDP(t *testing.T) {
	t.Parallel()
	a := newStation(t, open(t, labtest.Pair(t).A, WithNetwork(NetworkUDP)))
	for _, nobody := range []string{"10.77.0.99", "fd77::99"} {
		a.post(a.send(1, a.ah(nobody), a, a.piece(0, 64)))
		if wc := a.wait(1)[0]; wc.Status != verbs.WCSuccess {
			t.Errorf("a datagram to %s: %v", nobody, wc.Status)
		}
		qp, err := a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: a.cq, RecvCQ: a.cq, Cap: defaultCap()})
		check(t, err)
		check(t, qp.Connect(&verbs.QPAttr{
			AHAttr: *a.route(nobody), DestQPN: 5, PathMTU: wire.MTU256, Timeout: verbs.TimeoutCode(time.Millisecond), RetryCnt: 1,
		}))
		check(t, qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled}}))
		if wc := a.wait(1)[0]; wc.Status != verbs.WCRetryExcErr {
			t.Errorf("a write to %s: %v", nobody, wc.Status)
		}
	}
	if drops := a.drops(); len(drops) > 0 {
		t.Errorf("drops %v", drops)
	}
}
