package verbstest

import (
	"bytes"
	"testing"

	"github.com/roced/roced/verbs"
)

var revokeTests = []test{
	{name: "memory that is taken away", run: memoryTakenAway, rounds: 5},
}

// Once a key is revoked, by whatever means, no byte is written by it and none is read, also not for a
// request that had begun.
func memoryTakenAway(t *testing.T, w *world) {
	for name, revoke := range map[string]func(p *peer, mw *verbs.MW){
		"the region is closed":     func(p *peer, mw *verbs.MW) { check(p, mw.Close()); check(p, p.mr.Close()) },
		"the region's rights end":  func(p *peer, mw *verbs.MW) { check(p, mw.Close()); p.forbid() },
		"the window is closed":     func(p *peer, mw *verbs.MW) { check(p, mw.Close()) },
		"the window is unbound":    func(p *peer, mw *verbs.MW) { p.unbind(mw) },
		"the queue pair is closed": func(p *peer, _ *verbs.MW) { check(p, p.qp.Close()) },
		"the queue pair is reset":  func(p *peer, _ *verbs.MW) { to(p, p.qp, verbs.QPStateReset) },
	} {
		for _, op := range opsOfRDMA {
			t.Run(name+", "+op.String(), func(t *testing.T) {
				p := w.connect(verbs.QPTypeRC, func(a *verbs.QPAttr) { a.Timeout, a.RetryCnt, a.RNRRetry = 4, 2, 0 })
				mw := p.b.window(verbs.MWType1)
				p.b.bound(mw, 0, regionLen, verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
				memory := p.b.mr.Bytes()
				copy(p.a.mr.Bytes(), pattern(regionLen, 1))
				copy(memory, pattern(regionLen, 1))
				wr := p.a.request(op, &p.b, regionLen)
				if name == "the window is closed" || name == "the window is unbound" {
					wr.RKey = mw.RKey()
				}
				defer p.close()
				for range depth {
					p.b.recv(recvID, 0, 0) // for immediate data
					p.a.post(wr)
				}
				revoke(&p.b, mw)
				clear(memory)
				failed := p.a.wait(depth)
				if failed[depth-1].Status == verbs.WCSuccess {
					return // all was over before it began
				}
				if !bytes.Equal(memory, make([]byte, regionLen)) {
					t.Error("a byte was written by a key that is revoked")
				}
				if op == verbs.WRRDMARead && !bytes.Equal(p.a.mr.Bytes(), pattern(regionLen, 1)) {
					t.Error("a byte was read by a key that is revoked")
				}
			})
		}
	}
}

// unbind unbinds a window. Receives may complete before that has.
func (p *peer) unbind(mw *verbs.MW) {
	p.Helper()
	p.post(p.bind(mw, 0, 0, 0))
	for {
		if wc := p.wait(1)[0]; wc.Opcode == verbs.WCBindMW {
			check(p, wc.Err())
			return
		}
	}
}

// close ends both queue pairs, of which the test may have closed one.
func (p *peers) close() {
	for _, end := range []*peer{&p.a, &p.b} {
		if err := end.qp.Close(); verbs.KindOf(err) != verbs.ErrObjectClosed {
			check(end, err)
		}
	}
}

// forbid takes all remote rights from the peer's region.
func (p *peer) forbid() {
	p.Helper()
	check(p, p.mr.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite}, verbs.ReregChangeAccess))
}
