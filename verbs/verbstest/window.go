// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var windowTests = []rig.Test{
	{Name: "memory windows of type 1", Run: windowsOfType1},
	{Name: "memory windows of type 2", Run: windowsOfType2},
	{Name: "memory windows hold their region", Run: windowsHoldRegions},
	{Name: "binds that fail", Run: bindsThatFail},
	{Name: "binds that are refused", Run: bindsThatAreRefused},
}

// windowsOfType1 checks that a window grants the peer access to its part of the region only. A second bind changes the
// key, and unbinding or closing the window invalidates it.
func windowsOfType1(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	mw := p.B.Window(verbs.MWType1)
	unbound, base := mw.RKey(), p.B.MR.IOVA()
	p.B.Bound(mw, 100, 50, verbs.AccessRemoteWrite)
	first := mw.RKey()
	copy(p.A.MR.Bytes(), rig.Pattern(50, 3))
	for _, row := range []struct {
		what   string
		key    verbs.RKey
		addr   uint64
		length int
		want   verbs.WCStatus
	}{
		{"the part", first, base + 100, 50, verbs.WCSuccess},
		{"before it", first, base + 99, 1, verbs.WCRemAccessErr},
		{"behind it", first, base + 149, 2, verbs.WCRemAccessErr},
		{"by the old key", unbound, base + 100, 1, verbs.WCRemAccessErr},
		{"by the next key", verbs.IncRKey(first), base + 100, 1, verbs.WCRemAccessErr},
	} {
		if got := p.Reaches(row.key, row.addr, row.length); got != row.want {
			t.Errorf("%s: %v, want %v", row.what, got, row.want)
		}
	}
	if !bytes.Equal(p.B.MR.Bytes()[100:150], rig.Pattern(50, 3)) {
		t.Error("the bytes of the part differ")
	}
	rig.Check(t, p.B.QP.BindMW(1, verbs.SendSignaled, &verbs.MWBind{MW: mw, MR: p.B.MR, Addr: base, Length: 10, Access: verbs.AccessRemoteWrite}))
	p.B.Expect(rig.OK(1))
	if p.Reaches(first, base+100, 1) != verbs.WCRemAccessErr || p.Reaches(mw.RKey(), base, 10) != verbs.WCSuccess {
		t.Error("the old key of a rebound window is still valid")
	}
	p.B.Bound(mw, 0, 0, 0) // unbinds the window
	if p.Reaches(mw.RKey(), base, 1) != verbs.WCRemAccessErr {
		t.Error("the key of an unbound window is still valid")
	}
	p.B.Bound(mw, 0, 10, verbs.AccessRemoteWrite)
	rig.Check(t, mw.Close())
	if p.Reaches(mw.RKey(), base, 1) != verbs.WCRemAccessErr {
		t.Error("the key of a closed window is still valid")
	}
	rig.Refused(t, mw.Close(), unix.EINVAL)
}

// windowsOfType2 checks that a window of type 2 grants access to the peer of one queue pair only, until either side
// invalidates its key.
func windowsOfType2(t *testing.T, w *rig.World) {
	p, other := w.Connect(verbs.QPTypeRC, nil), w.Connect(verbs.QPTypeRC, nil)
	mw := p.B.Window(verbs.MWType2)
	zeroBased := verbs.AccessRemoteWrite | verbs.AccessZeroBased
	p.B.Bound(mw, 100, 50, zeroBased)
	if p.Reaches(mw.RKey(), 0, 50) != verbs.WCSuccess || other.Reaches(mw.RKey(), 0, 50) != verbs.WCRemAccessErr {
		t.Error("the window does not grant access to the peer of its queue pair only")
	}
	p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRLocalInv, InvalidateRKey: mw.RKey()})
	if wc := p.B.Expect(rig.OK(1))[0]; wc.Opcode != verbs.WCLocalInv {
		t.Errorf("%+v", wc)
	}
	if p.Reaches(mw.RKey(), 0, 1) != verbs.WCRemAccessErr {
		t.Error("a locally invalidated key is still valid")
	}
	p.B.Bound(mw, 0, 50, zeroBased)
	p.B.Recv(2, 1000, 100)
	inv := p.A.Request(verbs.WRSendWithInv, &p.B, 5)
	inv.InvalidateRKey = mw.RKey()
	p.A.Post(inv)
	p.A.Expect(rig.OK(1))
	if wc := p.B.Expect(rig.OK(2))[0]; wc.Flags&verbs.WCWithInv == 0 || wc.InvalidatedRKey() != mw.RKey() || wc.ByteLen != 5 || wc.Opcode != verbs.WCRecv {
		t.Errorf("%+v", wc)
	}
	if p.Reaches(mw.RKey(), 0, 1) != verbs.WCRemAccessErr {
		t.Error("a key that the peer invalidated is still valid")
	}
	index := mw.RKey() &^ 0xFF
	for _, chosen := range []verbs.RKey{0, 0x17, 0xFF, ^mw.RKey()} { // the program chooses the low 8 bits only
		bind := p.B.Bind(mw, 0, 50, zeroBased)
		bind.RKey = ^index&^0xFF | chosen&0xFF
		p.B.Post(bind)
		p.B.Expect(rig.OK(1))
		if want := index | chosen&0xFF; mw.RKey() != want || p.Reaches(want, 0, 50) != verbs.WCSuccess || p.Reaches(bind.RKey, 0, 50) != verbs.WCRemAccessErr {
			t.Errorf("bound under %#x: the window's key is %#x, want %#x", bind.RKey, mw.RKey(), want)
		}
		p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRLocalInv, InvalidateRKey: mw.RKey()})
		p.B.Expect(rig.OK(1))
	}
	p.B.Bound(mw, 0, 50, zeroBased)
	rig.Check(t, mw.Close())
}

// windowsHoldRegions checks that a region cannot be closed or changed while a window is bound to it.
func windowsHoldRegions(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	mw := p.B.Window(verbs.MWType1)
	p.B.Bound(mw, 0, 10, verbs.AccessRemoteRead)
	rig.Refused(t, p.B.MR.Close(), unix.EBUSY, "memory windows that are bound to the region: 1")
	rig.Refused(t, p.B.MR.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess), unix.EBUSY)
	rig.Refused(t, p.B.PD.Close(), unix.EBUSY, "MW")
	rig.Check(t, mw.Close())
	rig.Check(t, p.B.MR.Close())
}

// bindsThatFail checks that an invalid bind completes with an error, moves the queue pair to ERR, and binds nothing.
func bindsThatFail(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	plain, err := p.B.PD.AllocMR(100, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	rig.Check(t, err)
	readable, err := p.B.PD.AllocMR(100, verbs.AccessMWBind)
	rig.Check(t, err)
	otherPD, err := p.B.Ctx.AllocPD()
	rig.Check(t, err)
	foreign, err := otherPD.AllocMW(verbs.MWType1)
	rig.Check(t, err)
	foreignMR, err := otherPD.AllocMR(100, verbs.AccessLocalWrite|verbs.AccessMWBind)
	rig.Check(t, err)
	closed := p.B.Window(verbs.MWType1)
	rig.Check(t, closed.Close())
	for what, spoil := range map[string]func(*verbs.SendWR){
		"a region without the right":      func(wr *verbs.SendWR) { wr.Bind.MR, wr.Bind.Addr = plain, 0 },
		"writing to a readable region":    func(wr *verbs.SendWR) { wr.Bind.MR, wr.Bind.Addr = readable, 0 },
		"a region of another PD":          func(wr *verbs.SendWR) { wr.Bind.MR, wr.Bind.Addr = foreignMR, 0 },
		"a window of another PD":          func(wr *verbs.SendWR) { wr.Bind.MW, wr.RKey = foreign, foreign.RKey() },
		"a window that is closed":         func(wr *verbs.SendWR) { wr.Bind.MW, wr.RKey = closed, closed.RKey() },
		"a part that ends too far":        func(wr *verbs.SendWR) { wr.Bind.Addr += rig.RegionLen - 9 },
		"a part that begins before":       func(wr *verbs.SendWR) { wr.Bind.Addr-- },
		"a part whose end wraps":          func(wr *verbs.SendWR) { wr.Bind.Length = 1<<64 - 1 },
		"a window of type 2, of no bytes": func(wr *verbs.SendWR) { wr.Bind.Length = 0 },
	} {
		mw := p.B.Window(verbs.MWType2)
		wr := p.B.Bind(mw, 0, 10, verbs.AccessRemoteWrite)
		spoil(&wr)
		p.B.Post(wr)
		if wc := p.B.Wait(1)[0]; wc.Status != verbs.WCMWBindErr {
			t.Errorf("%s: %v", what, wc.Status)
		}
		p.Again()
		rig.Check(t, mw.Close())
	}
	mw := p.B.Window(verbs.MWType2)
	p.B.Bound(mw, 0, 10, verbs.AccessRemoteWrite)
	p.B.Post(p.B.Bind(mw, 0, 10, verbs.AccessRemoteWrite))
	p.B.Expect(rig.Ended(1, verbs.WCMWBindErr)) // the window is already bound
}

// bindsThatAreRefused checks errors that PostSend and AllocMW detect.
func bindsThatAreRefused(t *testing.T, w *rig.World) {
	for _, kind := range []verbs.MWType{0, 3, 255} {
		_, err := w.A.PD.AllocMW(kind)
		rig.Refused(t, err, unix.EINVAL, "there are 1 and 2")
	}
	p := w.Connect(verbs.QPTypeUC, nil)
	mw := p.A.Window(verbs.MWType2)
	for says, spoil := range map[string]func(*verbs.SendWR){
		"needs SendWR.Bind":      func(wr *verbs.SendWR) { wr.Bind = nil },
		"with the window":        func(wr *verbs.SendWR) { wr.Bind.MW = nil },
		"and the region":         func(wr *verbs.SendWR) { wr.Bind.MR = nil },
		"access flags LOCAL_WRI": func(wr *verbs.SendWR) { wr.Bind.Access |= verbs.AccessLocalWrite },
		"takes no SGEs":          func(wr *verbs.SendWR) { wr.SGList = []verbs.SGE{p.A.MR.SGE(0, 1)} },
		"SendInline":             func(wr *verbs.SendWR) { wr.Flags = verbs.SendInline },
	} {
		wr := p.A.Bind(mw, 0, 10, verbs.AccessRemoteWrite)
		spoil(&wr)
		rig.Refused(t, p.A.QP.PostSend([]verbs.SendWR{wr}), unix.EINVAL, says)
	}
	bind := p.A.Bind(mw, 0, 10, 0)
	rig.Refused(t, p.A.QP.BindMW(1, 0, bind.Bind), unix.EINVAL, "of type 2; bind it by PostSend")
	rig.Refused(t, p.A.QP.BindMW(1, 0, nil), unix.EINVAL)
	ud := w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP)
	ud.Opcode = verbs.WRBindMW
	rig.Refused(t, w.A.QP.PostSend([]verbs.SendWR{ud}), unix.EINVAL, "not an operation of datagrams")
}
