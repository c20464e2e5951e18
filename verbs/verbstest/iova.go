package verbstest

import (
	"fmt"
	"math"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var iovaTests = []test{
	{name: "addressed region", run: addressedRegion},
	{name: "addressed region: protection", run: addressedProtection},
	{name: "addressed region: inline", run: addressedInline},
}

// bases are addresses that regions of the tests begin at: also such as no memory has, and one whose
// region ends right below 2^64.
var bases = []uint64{0, 1, 4096, 0x7f12_3456_7000, 1<<63 - 100, math.MaxUint64 - slotLen}

// addressed gives a station's region that begins at an address.
func (s *station) addressed(iova uint64) *verbs.MR {
	s.Helper()
	mr, err := s.pd.AllocMRIOVA(slotLen, iova, verbs.AccessLocalWrite)
	check(s, err)
	return mr
}

// A region with a base address is used by SGEs with addresses in it, as C programs write them; what
// SGE makes are such.
func addressedRegion(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	for _, base := range bases {
		t.Run(fmt.Sprintf("%#x", base), func(t *testing.T) {
			from, into := a.addressed(base), b.addressed(base)
			copy(from.Bytes()[100:], "by its address")
			check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{{Addr: base + 8, Length: slotLen - 8, LKey: into.LKey()}}}}))
			a.post(a.send(2, ah, b.qp, verbs.SGE{Addr: base + 100, Length: 6, LKey: from.LKey()}, from.SGE(106, 8)))
			a.expect(ok(2))
			got := b.expect(ok(1))
			if _, payload := got[0].Payload(into.Bytes()[8:]); string(payload) != "by its address" {
				t.Errorf("got %q", payload)
			}
			check(t, from.Close())
			check(t, into.Close())
		})
	}
}

// outside are SGEs that do not lie in a region: below its base, behind its end, and such as wrap round
// 2^64 in one of the sums that a card could make of address, length and base.
func outside(mr *verbs.MR) map[string]verbs.SGE {
	base, key := mr.IOVA(), mr.LKey()
	end := base + uint64(len(mr.Bytes()))
	return map[string]verbs.SGE{
		"one byte below":                {Addr: base - 1, Length: 100, LKey: key},
		"below, ends at the base":       {Addr: base - 100, Length: 100, LKey: key},
		"below, ends inside":            {Addr: base - 50, Length: 100, LKey: key},
		"below and over the end":        {Addr: base - 1, Length: uint32(len(mr.Bytes()) + 2), LKey: key},
		"one byte too far":              {Addr: end - 99, Length: 100, LKey: key},
		"behind the end":                {Addr: end, Length: 1, LKey: key},
		"offset instead of address":     {Addr: base ^ 1<<62, Length: 100, LKey: key},
		"address plus length overflows": {Addr: math.MaxUint64 - 50, Length: 100, LKey: key},
		"in the other half":             {Addr: base + 1<<63, Length: 100, LKey: key},
		"length of 4 GiB":               {Addr: base + 1, Length: math.MaxUint32, LKey: key},
		"SGE of a negative offset":      mr.SGE(-1, 100),
		"SGE of too large an offset":    mr.SGE(math.MaxInt, 100),
		"SGE of a negative length":      mr.SGE(0, -1),
	}
}

// What does not lie in an addressed region is refused, whichever way its address is wrong.
func addressedProtection(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	for _, base := range bases {
		mr := a.addressed(base)
		for name, sge := range outside(mr) {
			t.Run(fmt.Sprintf("%#x, %s", base, name), func(t *testing.T) {
				a.post(a.send(1, ah, b.qp, mr.SGE(0, 10), sge))
				a.expect(outcome{1, verbs.WCLocProtErr})
				to(t, a.qp, verbs.QPStateRTS)
			})
		}
	}
	w.nothingElse() // nothing was sent
}

// Inline data is found by address too. The key of an SGE without length does not matter.
func addressedInline(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	inline := func(sges ...verbs.SGE) verbs.SendWR {
		wr := a.send(1, ah, b.qp, sges...)
		wr.Flags |= verbs.SendInline
		return wr
	}
	for _, base := range bases {
		mr := a.addressed(base)
		copy(mr.Bytes()[10:], "inline")
		b.receive(0)
		a.post(inline(verbs.SGE{Addr: 1, LKey: 77}, verbs.SGE{Addr: base + 10, Length: 6, LKey: mr.LKey()}))
		a.expect(ok(1))
		got := b.expect(ok(0))
		if _, payload := b.received(got[0]); string(payload) != "inline" {
			t.Errorf("at %#x: got %q", base, payload)
		}
		for name, sge := range outside(mr) {
			sge.Length = min(sge.Length, 32)
			if sge.Addr-base < slotLen-32 {
				continue // it was the length that did not fit
			}
			err := a.qp.PostSend([]verbs.SendWR{inline(sge)})
			refused(t, err, unix.EINVAL)
			if err == nil {
				t.Errorf("at %#x: %s", base, name)
			}
		}
	}
	w.nothingElse()
}
