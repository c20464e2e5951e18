// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var revokeTests = []rig.Test{
	{Name: "memory that is taken away", Run: memoryTakenAway, Rounds: 5},
}

// memoryTakenAway checks that no byte is written or read with a revoked key, also for requests in progress.
func memoryTakenAway(t *testing.T, w *rig.World) {
	for name, revoke := range map[string]func(p *rig.Peer, mw *verbs.MW){
		"the region is closed":     func(p *rig.Peer, mw *verbs.MW) { rig.Check(p, mw.Close()); rig.Check(p, p.MR.Close()) },
		"the region's rights end":  func(p *rig.Peer, mw *verbs.MW) { rig.Check(p, mw.Close()); p.Forbid() },
		"the window is closed":     func(p *rig.Peer, mw *verbs.MW) { rig.Check(p, mw.Close()) },
		"the window is unbound":    func(p *rig.Peer, mw *verbs.MW) { p.Unbind(mw) },
		"the queue pair is closed": func(p *rig.Peer, _ *verbs.MW) { rig.Check(p, p.QP.Close()) },
		"the queue pair is reset":  func(p *rig.Peer, _ *verbs.MW) { rig.To(p, p.QP, verbs.QPStateReset) },
	} {
		for _, op := range rig.OpsOfRDMA {
			t.Run(name+", "+op.String(), func(t *testing.T) {
				p := w.Connect(verbs.QPTypeRC, func(a *verbs.QPAttr) { a.Timeout, a.RetryCnt, a.RNRRetry = 4, 2, 0 })
				mw := p.B.Window(verbs.MWType1)
				p.B.Bound(mw, 0, rig.RegionLen, verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
				memory := p.B.MR.Bytes()
				copy(p.A.MR.Bytes(), rig.Pattern(rig.RegionLen, 1))
				copy(memory, rig.Pattern(rig.RegionLen, 1))
				wr := p.A.Request(op, &p.B, rig.RegionLen)
				if name == "the window is closed" || name == "the window is unbound" {
					wr.RKey = mw.RKey()
				}
				defer p.Close()
				for range rig.Depth {
					p.B.Recv(recvID, 0, 0) // for immediate data
					p.A.Post(wr)
				}
				revoke(&p.B, mw)
				clear(memory)
				failed := p.A.Wait(rig.Depth)
				if failed[rig.Depth-1].Status == verbs.WCSuccess {
					return // all requests were executed before
				}
				if !bytes.Equal(memory, make([]byte, rig.RegionLen)) {
					t.Error("a byte was written with a revoked key")
				}
				if op == verbs.WRRDMARead && !bytes.Equal(p.A.MR.Bytes(), rig.Pattern(rig.RegionLen, 1)) {
					t.Error("a byte was read with a revoked key")
				}
			})
		}
	}
}
