package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
)

var keyTests = []test{
	{name: "keys", run: keys},
	{name: "fast registration key", run: fastRegKey},
	{name: "empty SGE in a request of no bytes", run: emptySGEAlone},
}

// The low 8 bits of a key count up and wrap round, the others stay.
func keys(t *testing.T, w *world) {
	for from, want := range map[verbs.RKey]verbs.RKey{
		0: 1, 0xFE: 0xFF, 0xFF: 0, 0x1234_56FF: 0x1234_5600, 0xFFFF_FFFF: 0xFFFF_FF00, 0xFFFF_FF00: 0xFFFF_FF01,
	} {
		if got := verbs.IncRKey(from); got != want {
			t.Errorf("%#x: %#x, want %#x", from, got, want)
		}
	}
	if mr := w.a.mr; uint32(mr.LKey()) != uint32(mr.RKey()) || mr.SGE(0, 1).LKey != mr.LKey() {
		t.Errorf("lkey %#x, rkey %#x, key of an SGE %#x", mr.LKey(), mr.RKey(), mr.SGE(0, 1).LKey)
	}
}

// A new low part of the key is the object's alone: requests with it fail, the region works on, and
// closes.
func fastRegKey(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	mr, err := a.pd.AllocMR(10, 0)
	check(t, err)
	key := mr.LKey()
	mr.UpdateFastRegKey(uint8(verbs.IncRKey(mr.RKey())))
	if mr.LKey() == key || mr.LKey()&^0xFF != key&^0xFF || uint32(mr.RKey()) != uint32(mr.LKey()) {
		t.Errorf("lkey %#x after %#x, rkey %#x", mr.LKey(), key, mr.RKey())
	}
	a.post(a.send(1, ah, b.qp, verbs.SGE{Length: 10, LKey: mr.LKey()}))
	a.expect(outcome{1, verbs.WCLocProtErr})
	to(t, a.qp, verbs.QPStateRTS)
	b.receive(0, 1)
	a.post(a.send(2, ah, b.qp, mr.SGE(0, 10)))
	a.expect(ok(2))
	mr.UpdateFastRegKey(uint8(key))
	if mr.LKey() != key {
		t.Errorf("lkey %#x, want %#x again", mr.LKey(), key)
	}
	a.post(a.send(3, ah, b.qp, verbs.SGE{Length: 10, LKey: mr.LKey()}))
	a.expect(ok(3))
	b.expect(ok(0), ok(1))
	check(t, mr.Close())
	refused(t, mr.Close(), verbs.ErrObjectClosed)
}

// A request of no bytes is carried out whatever keys and addresses its SGEs have.
func emptySGEAlone(t *testing.T, w *world) {
	a, b := w.a, w.b
	foreignPD, err := a.ctx.AllocPD()
	check(t, err)
	foreign, err := foreignPD.AllocMR(10, 0)
	check(t, err)
	closed, err := a.pd.AllocMR(10, 0)
	check(t, err)
	check(t, closed.Close())
	ah := a.ah(b.end.IPv4)
	for name, sge := range map[string]verbs.SGE{
		"no such key": {LKey: 0xFFFFFFFF}, "key 0": {}, "another PD's": foreign.SGE(0, 0), "closed": closed.SGE(0, 0),
		"far behind": {Addr: 1 << 63, LKey: a.mr.LKey()},
	} {
		for _, flags := range []verbs.SendFlags{verbs.SendSignaled, verbs.SendSignaled | verbs.SendInline} {
			b.receive(0)
			wr := a.send(1, ah, b.qp, sge, sge)
			wr.Flags = flags
			a.post(wr)
			a.expect(ok(1))
			if got := b.expect(ok(0)); got[0].ByteLen != 40 {
				t.Errorf("%s: %d bytes", name, got[0].ByteLen)
			}
		}
	}
}
