// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"
	"math"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var iovaTests = []rig.Test{
	{Name: "addressed region", Run: addressedRegion},
	{Name: "addressed region: protection", Run: addressedProtection},
	{Name: "addressed region: inline", Run: addressedInline},
}

// bases contains the first addresses of the tests' regions. Some are not addresses of memory, and one region ends right
// below 2^64.
var bases = []uint64{0, 1, 4096, 0x7f12_3456_7000, 1<<63 - 100, math.MaxUint64 - rig.SlotLen}

// addressedRegion checks that the SGEs of a region with a base address contain addresses, as C programs write them.
// MR.SGE returns such SGEs.
func addressedRegion(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	for _, base := range bases {
		t.Run(fmt.Sprintf("%#x", base), func(t *testing.T) {
			from, into := a.Addressed(base), b.Addressed(base)
			copy(from.Bytes()[100:], "by its address")
			rig.Check(t, b.QP.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{{Addr: base + 8, Length: rig.SlotLen - 8, LKey: into.LKey()}}}}))
			a.Post(a.Send(2, ah, b.QP, verbs.SGE{Addr: base + 100, Length: 6, LKey: from.LKey()}, from.SGE(106, 8)))
			a.Expect(rig.OK(2))
			got := b.Expect(rig.OK(1))
			if _, payload := got[0].Payload(into.Bytes()[8:]); string(payload) != "by its address" {
				t.Errorf("got %q", payload)
			}
			rig.Check(t, from.Close())
			rig.Check(t, into.Close())
		})
	}
}

// outside returns SGEs that do not lie in a region: below its base, beyond its end, and those with which a sum of
// address, length and base wraps around 2^64.
func outside(mr *verbs.MR) map[string]verbs.SGE {
	base, key := mr.IOVA(), mr.LKey()
	end := base + uint64(len(mr.Bytes()))
	return map[string]verbs.SGE{
		"one byte below":                {Addr: base - 1, Length: 100, LKey: key},
		"below, ends at the base":       {Addr: base - 100, Length: 100, LKey: key},
		"below, ends inside":            {Addr: base - 50, Length: 100, LKey: key},
		"below and over the end":        {Addr: base - 1, Length: uint32(len(mr.Bytes()) + 2), LKey: key},
		"one byte too far":              {Addr: end - 99, Length: 100, LKey: key},
		"beyond the end":                {Addr: end, Length: 1, LKey: key},
		"offset instead of address":     {Addr: base ^ 1<<62, Length: 100, LKey: key},
		"address plus length overflows": {Addr: math.MaxUint64 - 50, Length: 100, LKey: key},
		"in the other half":             {Addr: base + 1<<63, Length: 100, LKey: key},
		"length of 4 GiB":               {Addr: base + 1, Length: math.MaxUint32, LKey: key},
		"SGE of a negative offset":      mr.SGE(-1, 100),
		"SGE of too large an offset":    mr.SGE(math.MaxInt, 100),
		"SGE of a negative length":      mr.SGE(0, -1),
	}
}

// addressedProtection checks that SGEs outside an addressed region fail.
func addressedProtection(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	for _, base := range bases {
		mr := a.Addressed(base)
		for name, sge := range outside(mr) {
			t.Run(fmt.Sprintf("%#x, %s", base, name), func(t *testing.T) {
				a.Post(a.Send(1, ah, b.QP, mr.SGE(0, 10), sge))
				a.Expect(rig.Ended(1, verbs.WCLocProtErr))
				rig.To(t, a.QP, verbs.QPStateRTS)
			})
		}
	}
	w.NothingElse() // nothing was sent
}

// addressedInline checks that inline data is read by address too, and that the key of an empty SGE is ignored.
func addressedInline(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	inline := func(sges ...verbs.SGE) verbs.SendWR {
		wr := a.Send(1, ah, b.QP, sges...)
		wr.Flags |= verbs.SendInline
		return wr
	}
	for _, base := range bases {
		mr := a.Addressed(base)
		copy(mr.Bytes()[10:], "inline")
		b.Receive(0)
		a.Post(inline(verbs.SGE{Addr: 1, LKey: 77}, verbs.SGE{Addr: base + 10, Length: 6, LKey: mr.LKey()}))
		a.Expect(rig.OK(1))
		got := b.Expect(rig.OK(0))
		if _, payload := b.Received(got[0]); string(payload) != "inline" {
			t.Errorf("at %#x: got %q", base, payload)
		}
		for name, sge := range outside(mr) {
			sge.Length = min(sge.Length, 32)
			if sge.Addr-base < rig.SlotLen-32 {
				continue // with the reduced length it lies inside
			}
			err := a.QP.PostSend([]verbs.SendWR{inline(sge)})
			rig.Refused(t, err, unix.EINVAL)
			if err == nil {
				t.Errorf("at %#x: %s", base, name)
			}
		}
	}
	w.NothingElse()
}
