// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// TestResetWhileBusy: a connected queue pair changes to RESET while its peer's requests arrive. It may owe an ACK,
// which is sent before its path is released.
func TestResetWhileBusy(t *testing.T) {
	w := newWirePair(t)
	a, b := newBulkEnd(w.a), newBulkEnd(w.b)
	for range 300 {
		for _, side := range []struct {
			own, peer *bulkEnd
			to        string
		}{{a, b, "10.0.0.2"}, {b, a, "10.0.0.1"}} {
			check(t, side.own.qp.Connect(&verbs.QPAttr{
				AHAttr: *side.own.route(side.to), DestQPN: side.peer.qp.Number(), PathMTU: wire.MTU1024, AccessFlags: verbs.AccessRemoteWrite,
				MaxRDAtomic: 1, MaxDestRDAtomic: 1, MinRNRTimer: 1, Timeout: 12, RetryCnt: 7, RNRRetry: 7,
			}))
		}
		for range 8 {
			check(t, a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 100)}, RKey: b.mr.RKey()}}))
		}
		for _, end := range []*bulkEnd{b, a} {
			check(t, end.qp.Modify(&verbs.QPAttr{State: verbs.QPStateReset}, verbs.QPAttrState))
		}
	}
}
