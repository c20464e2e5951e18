// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var keyTests = []rig.Test{
	{Name: "keys", Run: keys},
	{Name: "fast registration key", Run: fastRegKey},
	{Name: "empty SGE in a request of no bytes", Run: emptySGEAlone},
}

// keys checks that IncRKey increments the low 8 bits of a key modulo 256 and keeps the others.
func keys(t *testing.T, w *rig.World) {
	for from, want := range map[verbs.RKey]verbs.RKey{
		0: 1, 0xFE: 0xFF, 0xFF: 0, 0x1234_56FF: 0x1234_5600, 0xFFFF_FFFF: 0xFFFF_FF00, 0xFFFF_FF00: 0xFFFF_FF01,
	} {
		if got := verbs.IncRKey(from); got != want {
			t.Errorf("%#x: %#x, want %#x", from, got, want)
		}
	}
	if mr := w.A.MR; uint32(mr.LKey()) != uint32(mr.RKey()) || mr.SGE(0, 1).LKey != mr.LKey() {
		t.Errorf("lkey %#x, rkey %#x, key of an SGE %#x", mr.LKey(), mr.RKey(), mr.SGE(0, 1).LKey)
	}
}

// fastRegKey checks that UpdateFastRegKey changes the key in the MR object only: requests with the new key fail, the
// old key works, and the region can be closed.
func fastRegKey(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	mr, err := a.PD.AllocMR(10, 0)
	rig.Check(t, err)
	key := mr.LKey()
	kernel.UpdateFastRegKey(mr, uint8(verbs.IncRKey(mr.RKey())))
	if mr.LKey() == key || mr.LKey()&^0xFF != key&^0xFF || uint32(mr.RKey()) != uint32(mr.LKey()) {
		t.Errorf("lkey %#x after %#x, rkey %#x", mr.LKey(), key, mr.RKey())
	}
	a.Post(a.Send(1, ah, b.QP, verbs.SGE{Length: 10, LKey: mr.LKey()}))
	a.Expect(rig.Ended(1, verbs.WCLocProtErr))
	rig.To(t, a.QP, verbs.QPStateRTS)
	b.Receive(0, 1)
	a.Post(a.Send(2, ah, b.QP, mr.SGE(0, 10)))
	a.Expect(rig.OK(2))
	kernel.UpdateFastRegKey(mr, uint8(key))
	if mr.LKey() != key {
		t.Errorf("lkey %#x, want %#x again", mr.LKey(), key)
	}
	a.Post(a.Send(3, ah, b.QP, verbs.SGE{Length: 10, LKey: mr.LKey()}))
	a.Expect(rig.OK(3))
	b.Expect(rig.OK(0), rig.OK(1))
	rig.Check(t, mr.Close())
	rig.Refused(t, mr.Close(), verbs.ErrObjectClosed)
}

// emptySGEAlone checks that a request of 0 bytes succeeds with any keys and addresses in its SGEs.
func emptySGEAlone(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	foreignPD, err := a.Ctx.AllocPD()
	rig.Check(t, err)
	foreign, err := foreignPD.AllocMR(10, 0)
	rig.Check(t, err)
	closed, err := a.PD.AllocMR(10, 0)
	rig.Check(t, err)
	rig.Check(t, closed.Close())
	ah := a.AH(b.End.IPv4)
	for name, sge := range map[string]verbs.SGE{
		"no such key": {LKey: 0xFFFFFFFF}, "key 0": {}, "another PD's": foreign.SGE(0, 0), "closed": closed.SGE(0, 0),
		"far beyond the end": {Addr: 1 << 63, LKey: a.MR.LKey()},
	} {
		for _, flags := range []verbs.SendFlags{verbs.SendSignaled, verbs.SendSignaled | verbs.SendInline} {
			b.Receive(0)
			wr := a.Send(1, ah, b.QP, sge, sge)
			wr.Flags = flags
			a.Post(wr)
			a.Expect(rig.OK(1))
			if got := b.Expect(rig.OK(0)); got[0].ByteLen != 40 {
				t.Errorf("%s: %d bytes", name, got[0].ByteLen)
			}
		}
	}
}
