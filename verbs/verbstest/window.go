package verbstest

import (
	"bytes"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var windowTests = []test{
	{name: "memory windows of type 1", run: windowsOfType1},
	{name: "memory windows of type 2", run: windowsOfType2},
	{name: "memory windows hold their region", run: windowsHoldRegions},
	{name: "binds that fail", run: bindsThatFail},
	{name: "binds that are refused", run: bindsThatAreRefused},
}

func (p *peer) window(kind verbs.MWType) *verbs.MW {
	p.Helper()
	mw, err := p.pd.AllocMW(kind)
	check(p, err)
	if mw.Type() != kind {
		p.Errorf("type %d, want %d", mw.Type(), kind)
	}
	return mw
}

// bind is a request that binds a window to a part of the peer's region, under the next key.
func (p *peer) bind(mw *verbs.MW, offset, length uint64, access verbs.AccessFlags) verbs.SendWR {
	return verbs.SendWR{
		ID: 1, Opcode: verbs.WRBindMW, RKey: verbs.IncRKey(mw.RKey()),
		Bind: &verbs.MWBind{MW: mw, MR: p.mr, Addr: p.mr.IOVA() + offset, Length: length, Access: access},
	}
}

// bound posts a bind and waits for it.
func (p *peer) bound(mw *verbs.MW, offset, length uint64, access verbs.AccessFlags) {
	p.Helper()
	p.post(p.bind(mw, offset, length, access))
	if wc := p.expect(ok(1))[0]; wc.Opcode != verbs.WCBindMW {
		p.Errorf("bind: %+v", wc)
	}
}

// reaches writes by a key, and says how that ended. Afterwards both queue pairs are in RTS.
func (p *peers) reaches(key verbs.RKey, addr uint64, length int) verbs.WCStatus {
	p.a.Helper()
	wr := p.a.request(verbs.WRRDMAWrite, &p.b, length)
	wr.RKey, wr.RemoteAddr = key, addr
	p.a.post(wr)
	status := p.a.wait(1)[0].Status
	if status != verbs.WCSuccess {
		p.again()
	}
	return status
}

// again brings both queue pairs from ERR to RTS.
func (p *peers) again() {
	p.a.Helper()
	for _, end := range []*peer{&p.a, &p.b} {
		to(end, end.qp, verbs.QPStateReset)
	}
	p.a.connect(&p.b, nil)
	p.b.connect(&p.a, nil)
}

// A window lets the peer reach its part of the region, and nothing else. Bound again, it has a new key;
// unbound or closed, none.
func windowsOfType1(t *testing.T, w *world) {
	p := w.connect(verbs.QPTypeRC, nil)
	mw := p.b.window(verbs.MWType1)
	unbound, base := mw.RKey(), p.b.mr.IOVA()
	p.b.bound(mw, 100, 50, verbs.AccessRemoteWrite)
	first := mw.RKey()
	copy(p.a.mr.Bytes(), pattern(50, 3))
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
		if got := p.reaches(row.key, row.addr, row.length); got != row.want {
			t.Errorf("%s: %v, want %v", row.what, got, row.want)
		}
	}
	if !bytes.Equal(p.b.mr.Bytes()[100:150], pattern(50, 3)) {
		t.Error("the part has other bytes")
	}
	check(t, p.b.qp.BindMW(1, verbs.SendSignaled, &verbs.MWBind{MW: mw, MR: p.b.mr, Addr: base, Length: 10, Access: verbs.AccessRemoteWrite}))
	p.b.expect(ok(1))
	if p.reaches(first, base+100, 1) != verbs.WCRemAccessErr || p.reaches(mw.RKey(), base, 10) != verbs.WCSuccess {
		t.Error("a window that was bound again has its old part")
	}
	p.b.bound(mw, 0, 0, 0) // unbinds it
	if p.reaches(mw.RKey(), base, 1) != verbs.WCRemAccessErr {
		t.Error("a window that was unbound has a part")
	}
	p.b.bound(mw, 0, 10, verbs.AccessRemoteWrite)
	check(t, mw.Close())
	if p.reaches(mw.RKey(), base, 1) != verbs.WCRemAccessErr {
		t.Error("a window that was closed has a part")
	}
	refused(t, mw.Close(), unix.EINVAL)
}

// A window of type 2 is for one queue pair's peer, until this side or the peer invalidates its key.
func windowsOfType2(t *testing.T, w *world) {
	p, other := w.connect(verbs.QPTypeRC, nil), w.connect(verbs.QPTypeRC, nil)
	mw := p.b.window(verbs.MWType2)
	zeroBased := verbs.AccessRemoteWrite | verbs.AccessZeroBased
	p.b.bound(mw, 100, 50, zeroBased)
	if p.reaches(mw.RKey(), 0, 50) != verbs.WCSuccess || other.reaches(mw.RKey(), 0, 50) != verbs.WCRemAccessErr {
		t.Error("the window is not for its queue pair's peer")
	}
	p.b.post(verbs.SendWR{ID: 1, Opcode: verbs.WRLocalInv, InvalidateRKey: mw.RKey()})
	if wc := p.b.expect(ok(1))[0]; wc.Opcode != verbs.WCLocalInv {
		t.Errorf("%+v", wc)
	}
	if p.reaches(mw.RKey(), 0, 1) != verbs.WCRemAccessErr {
		t.Error("an invalidated key has a part")
	}
	p.b.bound(mw, 0, 50, zeroBased)
	p.b.recv(2, 1000, 100)
	inv := p.a.request(verbs.WRSendWithInv, &p.b, 5)
	inv.InvalidateRKey = mw.RKey()
	p.a.post(inv)
	p.a.expect(ok(1))
	if wc := p.b.expect(ok(2))[0]; wc.Flags&verbs.WCWithInv == 0 || wc.InvalidatedRKey() != mw.RKey() || wc.ByteLen != 5 || wc.Opcode != verbs.WCRecv {
		t.Errorf("%+v", wc)
	}
	if p.reaches(mw.RKey(), 0, 1) != verbs.WCRemAccessErr {
		t.Error("a key that the peer has invalidated has a part")
	}
	p.b.bound(mw, 0, 50, zeroBased)
	check(t, mw.Close())
}

// A region stays as it is while a window is bound to it.
func windowsHoldRegions(t *testing.T, w *world) {
	p := w.connect(verbs.QPTypeRC, nil)
	mw := p.b.window(verbs.MWType1)
	p.b.bound(mw, 0, 10, verbs.AccessRemoteRead)
	refused(t, p.b.mr.Close(), unix.EBUSY, "memory windows that are bound to the region: 1")
	refused(t, p.b.mr.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess), unix.EBUSY)
	refused(t, p.b.pd.Close(), unix.EBUSY, "MW")
	check(t, mw.Close())
	check(t, p.b.mr.Close())
}

// A bind that cannot be is an error of the request, which stops the queue pair, and binds nothing.
func bindsThatFail(t *testing.T, w *world) {
	p := w.connect(verbs.QPTypeRC, nil)
	plain, err := p.b.pd.AllocMR(100, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	check(t, err)
	readable, err := p.b.pd.AllocMR(100, verbs.AccessMWBind)
	check(t, err)
	otherPD, err := p.b.ctx.AllocPD()
	check(t, err)
	foreign, err := otherPD.AllocMW(verbs.MWType1)
	check(t, err)
	foreignMR, err := otherPD.AllocMR(100, verbs.AccessLocalWrite|verbs.AccessMWBind)
	check(t, err)
	closed := p.b.window(verbs.MWType1)
	check(t, closed.Close())
	for what, spoil := range map[string]func(*verbs.SendWR){
		"a region without the right":      func(wr *verbs.SendWR) { wr.Bind.MR, wr.Bind.Addr = plain, 0 },
		"writing to a readable region":    func(wr *verbs.SendWR) { wr.Bind.MR, wr.Bind.Addr = readable, 0 },
		"a region of another PD":          func(wr *verbs.SendWR) { wr.Bind.MR, wr.Bind.Addr = foreignMR, 0 },
		"a window of another PD":          func(wr *verbs.SendWR) { wr.Bind.MW, wr.RKey = foreign, foreign.RKey() },
		"a window that is closed":         func(wr *verbs.SendWR) { wr.Bind.MW, wr.RKey = closed, closed.RKey() },
		"a part that ends too far":        func(wr *verbs.SendWR) { wr.Bind.Addr += regionLen - 9 },
		"a part that begins before":       func(wr *verbs.SendWR) { wr.Bind.Addr-- },
		"a part whose end wraps":          func(wr *verbs.SendWR) { wr.Bind.Length = 1<<64 - 1 },
		"a window of type 2, of no bytes": func(wr *verbs.SendWR) { wr.Bind.Length = 0 },
	} {
		mw := p.b.window(verbs.MWType2)
		wr := p.b.bind(mw, 0, 10, verbs.AccessRemoteWrite)
		spoil(&wr)
		p.b.post(wr)
		if wc := p.b.wait(1)[0]; wc.Status != verbs.WCMWBindErr {
			t.Errorf("%s: %v", what, wc.Status)
		}
		p.again()
		check(t, mw.Close())
	}
	mw := p.b.window(verbs.MWType2)
	p.b.bound(mw, 0, 10, verbs.AccessRemoteWrite)
	p.b.post(p.b.bind(mw, 0, 10, verbs.AccessRemoteWrite))
	p.b.expect(outcome{1, verbs.WCMWBindErr}) // it is bound
}

// What is wrong for every card is refused when it is asked for.
func bindsThatAreRefused(t *testing.T, w *world) {
	for _, kind := range []verbs.MWType{0, 3, 255} {
		_, err := w.a.pd.AllocMW(kind)
		refused(t, err, unix.EINVAL, "there are 1 and 2")
	}
	p := w.connect(verbs.QPTypeUC, nil)
	mw, other := p.a.window(verbs.MWType2), p.a.window(verbs.MWType1)
	for says, spoil := range map[string]func(*verbs.SendWR){
		"needs Bind":             func(wr *verbs.SendWR) { wr.Bind = nil },
		"with the window":        func(wr *verbs.SendWR) { wr.Bind.MW = nil },
		"and the region":         func(wr *verbs.SendWR) { wr.Bind.MR = nil },
		"only the low 8 bits":    func(wr *verbs.SendWR) { wr.RKey = other.RKey() },
		"access flags LOCAL_WRI": func(wr *verbs.SendWR) { wr.Bind.Access |= verbs.AccessLocalWrite },
		"with SGEs":              func(wr *verbs.SendWR) { wr.SGList = []verbs.SGE{p.a.mr.SGE(0, 1)} },
		"SendInline":             func(wr *verbs.SendWR) { wr.Flags = verbs.SendInline },
	} {
		wr := p.a.bind(mw, 0, 10, verbs.AccessRemoteWrite)
		spoil(&wr)
		refused(t, p.a.qp.PostSend([]verbs.SendWR{wr}), unix.EINVAL, says)
	}
	bind := p.a.bind(mw, 0, 10, 0)
	refused(t, p.a.qp.BindMW(1, 0, bind.Bind), unix.EINVAL, "of type 2; PostSend")
	refused(t, p.a.qp.BindMW(1, 0, nil), unix.EINVAL)
	ud := w.a.send(1, w.a.ah(w.b.end.IPv4), w.b.qp)
	ud.Opcode = verbs.WRBindMW
	refused(t, w.a.qp.PostSend([]verbs.SendWR{ud}), unix.EINVAL, "not an operation of datagrams")
}
