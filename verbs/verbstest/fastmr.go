// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var fastMRTests = []rig.Test{
	{Name: "fast registration", Run: fastRegistration},
	{Name: "fast registration in pieces", Run: fastPieces},
	{Name: "fast registrations that fail", Run: fastThatFails},
	{Name: "fast registrations that are refused", Run: fastThatIsRefused},
	{Name: "kinds of fast regions", Run: fastKinds},
	{Name: "fast regions hold their memory", Run: fastHolds},
	{Name: "fast registration in order", Run: fastInOrder},
	{Name: "invalidated while written to", Run: invalidatedInFlight},
	{Name: "FMR", Run: fmr},
	{Name: "FMR refused", Run: fmrRefused},
}

const fastAccess = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead

// A region can be used from its registration to its invalidation by this side or the peer. Each registration has a new
// key.
func fastRegistration(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	mr := p.B.FastMR(4)
	if p.Reaches(mr.RKey(), 0, 1) != verbs.WCRemAccessErr {
		t.Error("the peer can write to an unregistered region")
	}
	list := p.B.Mapped(kernel.DMABidirectional, 1000, 50, 1050, 50)
	p.B.Registered(mr, list, fastAccess)
	first, base := mr.RKey(), mr.IOVA()
	copy(p.A.MR.Bytes(), rig.Pattern(100, 3))
	for _, row := range []struct {
		what   string
		key    verbs.RKey
		addr   uint64
		length int
		want   verbs.WCStatus
	}{
		{"the whole region", first, base, 100, verbs.WCSuccess},
		{"before it", first, base - 1, 1, verbs.WCRemAccessErr},
		{"after it", first, base + 99, 2, verbs.WCRemAccessErr},
		{"by the next key", verbs.IncRKey(first), base, 1, verbs.WCRemAccessErr},
	} {
		if got := p.Reaches(row.key, row.addr, row.length); got != row.want {
			t.Errorf("%s: %v, want %v", row.what, got, row.want)
		}
	}
	if !bytes.Equal(p.B.MR.Bytes()[1000:1100], rig.Pattern(100, 3)) {
		t.Error("the memory has wrong bytes")
	}
	p.B.Invalidated(mr)
	if p.Reaches(first, base, 1) != verbs.WCRemAccessErr {
		t.Error("an invalidated key is valid")
	}
	p.B.Registered(mr, list, fastAccess)
	p.B.Recv(2, 4000, 100)
	inv := p.A.Request(verbs.WRSendWithInv, &p.B, 5)
	inv.InvalidateRKey = mr.RKey()
	p.A.Post(inv)
	p.A.Expect(rig.OK(1))
	if wc := p.B.Expect(rig.OK(2))[0]; wc.Flags&verbs.WCWithInv == 0 || wc.InvalidatedRKey() != mr.RKey() {
		t.Errorf("%+v", wc)
	}
	if p.Reaches(mr.RKey(), mr.IOVA(), 1) != verbs.WCRemAccessErr {
		t.Error("a key that the peer has invalidated is valid")
	}
	rig.Check(t, mr.Close())
}

// Separate pieces of memory form one region for SGEs of every kind and for the peer, even in messages of many packets.
func fastPieces(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	mr := p.B.FastMR(8)
	parts := []int{20000, 7000, 40000, 1, 30000, 4096, 1000, 2999, 50000, 17}
	p.B.Registered(mr, p.B.Mapped(kernel.DMABidirectional, parts...), fastAccess)
	size := int(mr.Length())
	whole := func() (all []byte) {
		for i := 0; i < len(parts); i += 2 {
			all = append(all, p.B.MR.Bytes()[parts[i]:][:parts[i+1]]...)
		}
		return all
	}
	own := p.A.MR.Bytes()[:size]
	for i, o := range []verbs.Opcode{verbs.WRRDMAWrite, verbs.WRRDMARead} {
		copy(own, rig.Pattern(size, byte(i+1)))
		wr := p.A.Request(o, &p.B, size)
		wr.RKey, wr.RemoteAddr = mr.RKey(), mr.IOVA()
		if o == verbs.WRRDMARead {
			clear(own)
		}
		p.A.Post(wr)
		p.A.Expect(rig.OK(1))
		if !bytes.Equal(own, whole()) {
			t.Errorf("%v: wrong bytes", o)
		}
	}
	// The region's own program uses it to receive, send and read.
	rig.Check(t, p.B.QP.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{mr.SGE(0, 3), mr.SGE(3, size-3)}}}))
	copy(own, rig.Pattern(size, 7))
	p.A.Post(p.A.Request(verbs.WRSend, &p.B, size))
	p.A.Expect(rig.OK(1))
	p.B.Expect(rig.OK(2))
	if !bytes.Equal(own, whole()) {
		t.Error("receive: wrong bytes")
	}
	p.A.Recv(3, size, size)
	p.B.Post(verbs.SendWR{ID: 4, Opcode: verbs.WRSend, SGList: []verbs.SGE{mr.SGE(0, size)}})
	p.B.Expect(rig.OK(4))
	p.A.Expect(rig.OK(3))
	if !bytes.Equal(p.A.MR.Bytes()[size:][:size], whole()) {
		t.Error("send: wrong bytes")
	}
	read := p.B.Request(verbs.WRRDMARead, &p.A, 0)
	read.SGList = []verbs.SGE{mr.SGE(10, size-10)}
	copy(own, rig.Pattern(size, 9))
	p.B.Post(read)
	p.B.Expect(rig.OK(1))
	if !bytes.Equal(own[:size-10], whole()[10:]) {
		t.Error("read: the bytes differ")
	}
}

// An invalid registration completes with an error that stops the queue pair, and registers nothing.
func fastThatFails(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	otherPD := p.B.AnotherPD()
	for what, spoil := range map[string]func(*verbs.SendWR){
		"writing without AccessLocalWrite": func(wr *verbs.SendWR) { wr.Reg.Access = verbs.AccessRemoteWrite },
		"unsupported access":               func(wr *verbs.SendWR) { wr.Reg.Access = verbs.AccessHugeTLB },
		"a region of another PD": func(wr *verbs.SendWR) {
			mr, err := kernel.AllocFastMR(otherPD, kernel.MRTypeSGGaps, 4)
			rig.Check(t, err)
			*wr = p.B.Reg(mr, p.B.Mapped(kernel.DMABidirectional, 0, 10), 0)
		},
		"to device, to be written": func(wr *verbs.SendWR) {
			*wr = p.B.Reg(wr.Reg.MR, p.B.Mapped(kernel.DMAToDevice, 0, 10, 20, 10), fastAccess)
		},
		"from device, to be read": func(wr *verbs.SendWR) {
			*wr = p.B.Reg(wr.Reg.MR, p.B.Mapped(kernel.DMAFromDevice, 0, 10), fastAccess)
		},
		"freed memory": func(wr *verbs.SendWR) {
			memory, addr, err := kernel.DMAAllocCoherent(p.B.Ctx, 4096)
			rig.Check(t, err)
			list := []kernel.SG{{Memory: memory}}
			kernel.DMAMapSG(p.B.Ctx, list, kernel.DMABidirectional)
			*wr = p.B.Reg(wr.Reg.MR, list, 0)
			rig.Check(t, kernel.DMAFreeCoherent(p.B.Ctx, memory, addr))
		},
		"a closed region": func(wr *verbs.SendWR) {
			mr := p.B.FastMR(4)
			*wr = p.B.Reg(mr, p.B.Mapped(kernel.DMABidirectional, 0, 10), 0)
			rig.Check(t, mr.Close())
		},
	} {
		mr := p.B.FastMR(4)
		wr := p.B.Reg(mr, p.B.Mapped(kernel.DMABidirectional, 0, 10, 20, 10), fastAccess)
		spoil(&wr)
		p.B.Post(wr)
		if wc := p.B.Wait(1)[0]; wc.Status != verbs.WCMWBindErr {
			t.Errorf("%s: %v", what, wc.Status)
		}
		p.Again()
		if p.Reaches(mr.RKey(), mr.IOVA(), 1) != verbs.WCRemAccessErr {
			t.Errorf("%s: the region was registered", what)
		}
		rig.Check(t, mr.Close())
	}
	mr, list := p.B.FastMR(4), p.B.Mapped(kernel.DMABidirectional, 0, 10)
	p.B.Registered(mr, list, fastAccess)
	p.B.Post(p.B.Reg(mr, list, fastAccess))
	p.B.Expect(rig.Ended(1, verbs.WCMWBindErr)) // the region is already registered
}

// Errors that do not depend on the card are returned by the call.
func fastThatIsRefused(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeUC, nil)
	device, err := p.A.Ctx.QueryDevice()
	rig.Check(t, err)
	most := device.MaxFastRegPageListLen
	for _, entries := range []int{-1, 0, most + 1, 1 << 40} {
		_, err := kernel.AllocFastMR(p.A.PD, kernel.MRTypeMemReg, entries)
		rig.Refused(t, err, unix.EINVAL, "there can be 1 to")
	}
	_, err = kernel.AllocFastMR(p.A.PD, 99, 1)
	rig.Refused(t, err, unix.EINVAL, "fast regions of type 99")
	full, err := kernel.AllocFastMR(p.A.PD, kernel.MRTypeMemReg, most)
	rig.Check(t, err)
	rig.Check(t, full.Close())
	mr, list := p.A.FastMR(2), p.A.Mapped(kernel.DMABidirectional, 0, 10)
	empty := p.A.FastMR(2)
	for says, spoil := range map[string]func(*verbs.SendWR){
		"needs SendWR.Reg":      func(wr *verbs.SendWR) { wr.Reg = nil },
		"of kernel.AllocFastMR": func(wr *verbs.SendWR) { wr.Reg.MR = p.A.MR },
		"only the low 8":        func(wr *verbs.SendWR) { wr.Reg.Key += 256 },
		"kernel.MapSG first":    func(wr *verbs.SendWR) { wr.Reg.MR, wr.Reg.Key = empty, empty.RKey() },
		"takes no SGEs":         func(wr *verbs.SendWR) { wr.SGList = []verbs.SGE{p.A.MR.SGE(0, 1)} },
		"SendInline":            func(wr *verbs.SendWR) { wr.Flags = verbs.SendInline },
		"needs RegMR.Sig":       func(wr *verbs.SendWR) { wr.Opcode = verbs.WRRegMRIntegrity },
	} {
		wr := p.A.Reg(mr, list, 0)
		spoil(&wr)
		rig.Refused(t, p.A.QP.PostSend([]verbs.SendWR{wr}), unix.EINVAL, says)
	}
	rig.Refused(t, mr.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess), unix.EINVAL, "a fast one")
	for says, ask := range map[string]func() error{
		"0 entries":       func() error { _, _, err := kernel.MapSG(mr, nil, 0, 4096); return err },
		"from byte 11":    func() error { _, _, err := kernel.MapSG(mr, list, 11, 4096); return err },
		"from byte -1":    func() error { _, _, err := kernel.MapSG(mr, list, -1, 4096); return err },
		"not a fast one":  func() error { _, _, err := kernel.MapSG(p.A.MR, list, 0, 4096); return err },
		"pages of 4095":   func() error { _, _, err := kernel.MapSG(full, list, 0, 4095); return err },
		"a power of two":  func() error { _, _, err := kernel.MapSG(full, list, 0, 2048); return err },
		"nil":             func() error { _, _, err := kernel.MapSG((*verbs.MR)(nil), list, 0, 4096); return err },
		"pages of 3 byte": func() error { _, _, _, err := kernel.SGToPages(list, 0, 3, nil); return err },
	} {
		rig.Refused(t, ask(), unix.EINVAL, says)
	}
}

// A region of MRTypeMemReg accepts the part of a list that consists of whole pages, and reports its length.
// MRTypeSGGaps accepts any pieces.
func fastKinds(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	const page = 4096
	for what, row := range map[string]struct {
		kind          kernel.MRType
		parts         []int
		offset        int
		entries, rest int
		length        uint64
	}{
		"whole pages":             {kernel.MRTypeMemReg, []int{0, 2 * page, 5 * page, page}, 0, 2, 0, 3 * page},
		"from within a page":      {kernel.MRTypeMemReg, []int{100, page - 100, 5 * page, 10}, 0, 2, 0, page - 90},
		"from an offset":          {kernel.MRTypeMemReg, []int{0, page, 5 * page, 10}, 4000, 2, 0, 106},
		"a gap before":            {kernel.MRTypeMemReg, []int{0, page - 1, 5 * page, 10}, 0, 1, 0, page - 1},
		"a gap behind":            {kernel.MRTypeMemReg, []int{0, page, 5*page + 1, 10}, 0, 1, 0, page},
		"one continues the other": {kernel.MRTypeMemReg, []int{10, 20, 30, 5000, 5030, 10}, 0, 3, 0, 5030},
		"too many pages":          {kernel.MRTypeMemReg, []int{0, page, 4 * page, 6 * page}, 0, 1, 3 * page, 4 * page},
		"many small ones":         {kernel.MRTypeMemReg, []int{0, 5, 5, 5, 10, 5, 15, 5, 20, 5, 25, 5}, 0, 6, 0, 30},
		"gaps":                    {kernel.MRTypeSGGaps, []int{1, 5, 100, 7, 3, 9}, 2, 3, 0, 19},
		"too many pieces":         {kernel.MRTypeSGGaps, []int{1, 5, 100, 7, 3, 9, 20, 1, 30, 1}, 0, 4, 0, 22},
	} {
		mr, err := kernel.AllocFastMR(p.B.PD, row.kind, 4)
		rig.Check(t, err)
		list := p.B.Mapped(kernel.DMABidirectional, row.parts...)
		entries, rest, err := kernel.MapSG(mr, list, row.offset, page)
		rig.Check(t, err)
		if entries != row.entries || rest != row.rest || mr.Length() != row.length {
			t.Errorf("%s: %d entries, %d bytes of the next entry, %d bytes in total", what, entries, rest, mr.Length())
		}
		var want []byte
		for i := range list {
			want = append(want, list[i].Memory...)
		}
		copy(p.B.MR.Bytes(), rig.Pattern(rig.RegionLen, 5))
		want = want[:0]
		for i := range list {
			want = append(want, list[i].Memory...)
		}
		p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRRegMR, Reg: &verbs.RegMR{MR: mr, Key: mr.RKey(), Access: verbs.AccessRemoteRead}})
		p.B.Expect(rig.OK(1))
		read := p.A.Request(verbs.WRRDMARead, &p.B, int(row.length))
		read.RKey, read.RemoteAddr = mr.RKey(), mr.IOVA()
		p.A.Post(read)
		p.A.Expect(rig.OK(1))
		if got := p.A.MR.Bytes()[:row.length]; !bytes.Equal(got, want[row.offset:][:row.length]) {
			t.Errorf("%s: wrong bytes", what)
		}
		rig.Check(t, mr.Close())
	}
	mr, err := kernel.AllocFastMR(p.B.PD, kernel.MRTypeMemReg, 1)
	rig.Check(t, err)
	if n, rest, err := kernel.MapSG(mr, p.B.Mapped(kernel.DMABidirectional, 0, 2*page), 0, page); err != nil || n != 0 || rest != page {
		t.Errorf("two pages for one: %d entries, %d bytes, %v", n, rest, err)
	}
}

// Memory cannot be freed or changed while a fast region is registered on it.
func fastHolds(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	mr := p.B.FastMR(2)
	memory, addr, err := kernel.DMAAllocCoherent(p.B.Ctx, 4096)
	rig.Check(t, err)
	list := []kernel.SG{{Memory: memory[:100]}, {Memory: p.B.MR.Bytes()[:100]}}
	kernel.DMAMapSG(p.B.Ctx, list, kernel.DMABidirectional)
	p.B.Registered(mr, list, fastAccess)
	rig.Refused(t, kernel.DMAFreeCoherent(p.B.Ctx, memory, addr), unix.EBUSY, "1 pieces of the region")
	rig.Refused(t, p.B.MR.Close(), unix.EBUSY)
	rig.Refused(t, p.B.MR.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess), unix.EBUSY)
	window := p.B.Window(verbs.MWType1)
	p.B.Invalidated(mr)
	p.B.Registered(mr, list, fastAccess|verbs.AccessMWBind)
	p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRBindMW, RKey: verbs.IncRKey(window.RKey()),
		Bind: &verbs.MWBind{MW: window, MR: mr, Addr: mr.IOVA() + 50, Length: 100, Access: verbs.AccessRemoteWrite}})
	p.B.Expect(rig.OK(1))
	if p.Reaches(window.RKey(), mr.IOVA()+50, 100) != verbs.WCSuccess {
		t.Error("a window of a fast region cannot be used")
	}
	if got := append(append([]byte(nil), memory[50:100]...), p.B.MR.Bytes()[:50]...); !bytes.Equal(got, p.A.MR.Bytes()[:100]) {
		t.Error("through the window: wrong bytes")
	}
	rig.Refused(t, mr.Close(), unix.EBUSY, "memory windows")
	rig.Check(t, window.Close())
	p.B.Invalidated(mr)
	rig.Check(t, kernel.DMAFreeCoherent(p.B.Ctx, memory, addr))
	rig.Check(t, p.B.MR.Close())
}

// Requests posted after a registration can use the region, and those posted after an invalidation cannot.
func fastInOrder(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	mr := p.A.FastMR(2)
	reg := p.A.Reg(mr, p.A.Mapped(kernel.DMABidirectional, 0, 3000, 8000, 3000), fastAccess)
	read := p.A.Request(verbs.WRRDMARead, &p.B, 0)
	read.ID, read.SGList = 2, []verbs.SGE{mr.SGE(0, 6000)}
	inv := verbs.SendWR{ID: 3, Opcode: verbs.WRLocalInv, InvalidateRKey: mr.RKey(), Flags: verbs.SendFence}
	copy(p.B.MR.Bytes(), rig.Pattern(6000, 1))
	for range 3 {
		p.A.Post(reg, read, inv)
		p.A.Expect(rig.OK(1), rig.OK(2), rig.OK(3))
	}
	if got := p.A.MR.Bytes(); !bytes.Equal(append(got[:3000:3000], got[8000:11000]...), rig.Pattern(6000, 1)) {
		t.Error("read: the bytes differ")
	}
	read.ID = 4
	p.A.Post(reg, inv, read)
	p.A.Expect(rig.OK(1), rig.OK(3), rig.Ended(4, verbs.WCLocProtErr))
}

// A key is invalidated while a long WRITE arrives. Nothing is written after the invalidation has completed.
func invalidatedInFlight(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	for round := range 20 {
		mr := p.B.FastMR(2)
		p.B.Registered(mr, p.B.Mapped(kernel.DMABidirectional, 0, 30000, 32000, 30000), fastAccess)
		copy(p.A.MR.Bytes(), rig.Pattern(60000, byte(round)))
		wr := p.A.Request(verbs.WRRDMAWrite, &p.B, 60000)
		wr.RKey, wr.RemoteAddr = mr.RKey(), mr.IOVA()
		p.A.Post(wr)
		p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRLocalInv, InvalidateRKey: mr.RKey()})
		invalidated := p.B.Wait(1)[0].Status
		before := append([]byte(nil), p.B.MR.Bytes()...)
		ended := p.A.Wait(1)[0].Status
		if invalidated == verbs.WCSuccess && !bytes.Equal(before, p.B.MR.Bytes()) {
			t.Errorf("round %d: memory was written after the invalidation", round)
		}
		if ended != verbs.WCSuccess && ended != verbs.WCRemAccessErr || invalidated != verbs.WCSuccess && invalidated != verbs.WCWRFlushErr {
			t.Errorf("round %d: %v, %v", round, ended, invalidated)
		}
		p.Again()
		rig.Check(t, mr.Close())
	}
}

// Commands map and unmap an FMR. Each mapping has a new key.
func fmr(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	f, err := kernel.AllocFMR(p.B.PD, fastAccess, &kernel.FMRAttr{MaxPages: 4, MaxMaps: 2, PageShift: 12})
	rig.Check(t, err)
	memory, addr, err := kernel.DMAAllocCoherent(p.B.Ctx, 4*4096)
	rig.Check(t, err)
	rig.Check(t, f.MapPhys([]kernel.DMAAddr{addr + 2*4096, addr}, 1<<20))
	first := f.RKey()
	if p.Reaches(first, 1<<20+4000, 200) != verbs.WCSuccess || p.Reaches(first, 1<<20+8000, 200) != verbs.WCRemAccessErr {
		t.Error("the mapping does not contain its pages")
	}
	if want := p.A.MR.Bytes()[:200]; !bytes.Equal(memory[2*4096+4000:][:96], want[:96]) || !bytes.Equal(memory[:104], want[96:]) {
		t.Error("wrong bytes")
	}
	rig.Check(t, f.MapPhys([]kernel.DMAAddr{addr + 4096}, 0))
	if p.Reaches(first, 1<<20, 1) != verbs.WCRemAccessErr || p.Reaches(f.RKey(), 0, 4096) != verbs.WCSuccess {
		t.Error("the previous mapping is still valid")
	}
	rig.Refused(t, f.MapPhys([]kernel.DMAAddr{addr}, 0), unix.EINVAL, "mapped 2 times")
	rig.Refused(t, f.Close(), unix.EBUSY, "unmap it first")
	rig.Refused(t, kernel.DMAFreeCoherent(p.B.Ctx, memory, addr), unix.EBUSY)
	other, err := kernel.AllocFMR(p.B.PD, fastAccess, &kernel.FMRAttr{MaxPages: 1, MaxMaps: 1, PageShift: 12})
	rig.Check(t, err)
	rig.Check(t, other.MapPhys([]kernel.DMAAddr{addr}, 0))
	rig.Check(t, kernel.UnmapFMR([]*kernel.FMR{f, other}))
	for _, one := range []*kernel.FMR{f, other} {
		if p.Reaches(one.RKey(), 0, 1) != verbs.WCRemAccessErr {
			t.Error("a mapping is valid after it was unmapped")
		}
		rig.Check(t, one.Close())
	}
	rig.Check(t, kernel.DMAFreeCoherent(p.B.Ctx, memory, addr))
}

func fmrRefused(t *testing.T, w *rig.World) {
	pd := w.A.PD
	for says, attr := range map[string]*kernel.FMRAttr{
		"there can be 1 to": {MaxMaps: 1, PageShift: 12},
		"0 maps":            {MaxPages: 1, PageShift: 12},
		"pages of 2^11":     {MaxPages: 1, MaxMaps: 1, PageShift: 11},
		"pages of 2^31":     {MaxPages: 1, MaxMaps: 1, PageShift: 31},
	} {
		_, err := kernel.AllocFMR(pd, 0, attr)
		rig.Refused(t, err, unix.EINVAL, says)
	}
	f, err := kernel.AllocFMR(pd, fastAccess, &kernel.FMRAttr{MaxPages: 1, MaxMaps: 1, PageShift: 12})
	rig.Check(t, err)
	addr := kernel.DMAMapSingle(w.A.Ctx, w.A.MR.Bytes()[:4096], kernel.DMABidirectional)
	for says, ask := range map[string]func() error{
		"0 pages":              func() error { return f.MapPhys(nil, 0) },
		"2 pages":              func() error { return f.MapPhys([]kernel.DMAAddr{addr, addr}, 0) },
		"0x1 is within a page": func() error { return f.MapPhys([]kernel.DMAAddr{addr}, 1) },
		"page 0 is at":         func() error { return f.MapPhys([]kernel.DMAAddr{addr + 1}, 0) },
		"have to be mapped":    func() error { return f.MapPhys([]kernel.DMAAddr{0}, 0) },
		"nil":                  func() error { return kernel.UnmapFMR([]*kernel.FMR{nil}) },
	} {
		rig.Refused(t, ask(), unix.EINVAL, says)
	}
	rig.Check(t, f.Close())
}
