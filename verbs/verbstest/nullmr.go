// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var nullMRTests = []rig.Test{
	{Name: "null regions of datagrams", Run: nullDatagrams},
	{Name: "null regions of connections", Run: nullConnected},
	{Name: "null regions refuse", Run: nullRefuses},
}

// far returns an SGE that wraps around 2^64.
func far(mr *verbs.MR, length uint32) verbs.SGE {
	return verbs.SGE{Addr: 1<<64 - 3, Length: length, LKey: mr.SGE(0, 0).LKey}
}

// nullDatagrams checks that datagrams from a null region contain zeros, and that data received into one is discarded.
func nullDatagrams(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	from, err := a.PD.AllocNullMR()
	rig.Check(t, err)
	into, err := b.PD.AllocNullMR()
	rig.Check(t, err)
	copy(a.Slot(0), "headtail")
	b.Receive(0)
	a.Post(a.Send(1, a.AH(b.End.IPv4), b.QP, a.Piece(0, 4), far(from, 100), a.MR.SGE(4, 4)))
	a.Expect(rig.OK(1))
	if _, got := b.Received(b.Expect(rig.OK(0))[0]); got != "head"+string(make([]byte, 100))+"tail" {
		t.Errorf("%q", got)
	}
	clear(b.Slot(1))
	rig.Check(t, b.QP.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{far(into, 42), b.Piece(1, 2), into.SGE(0, 2), b.MR.SGE(rig.SlotLen+2, 4), far(into, 1<<31)}}}))
	a.Post(a.Send(3, a.AH(b.End.IPv4), b.QP, a.Piece(0, 8))) // the GRH, the next 2 bytes and 2 bytes in the middle are discarded
	a.Expect(rig.OK(3))
	if wc := b.Expect(rig.OK(2))[0]; wc.ByteLen != 48 || string(b.Slot(1)[:8]) != "adil\x00\x00\x00\x00" {
		t.Errorf("%d bytes, %q", wc.ByteLen, b.Slot(1)[:8])
	}
	a.Post(a.Send(4, a.AH(b.End.IPv4), b.QP, far(from, 1<<31))) // longer than the maximum datagram
	a.Expect(rig.Ended(4, verbs.WCLocLenErr))
	rig.Check(t, errors.Join(from.Close(), into.Close()))
}

// nullConnected checks messages of several packets, READs and atomics with null regions.
func nullConnected(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := w.Connect(kind, nil)
		from, err := p.A.PD.AllocNullMR()
		rig.Check(t, err)
		into, err := p.B.PD.AllocNullMR()
		rig.Check(t, err)
		const length, head, lost = 10_000, 3000, 5000
		sent := rig.Pattern(length, 1)
		copy(p.A.MR.Bytes(), sent)
		clear(p.B.MR.Bytes())
		rig.Check(t, p.B.QP.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{p.B.MR.SGE(0, head), far(into, lost), p.B.MR.SGE(head, length)}}}))
		p.A.Post(p.A.Request(verbs.WRSend, &p.B, length))
		p.A.Expect(rig.OK(1))
		p.B.Expect(rig.OK(2))
		want := append(append(bytes.Clone(sent[:head]), sent[head+lost:]...), make([]byte, lost)...)
		if !bytes.Equal(p.B.MR.Bytes()[:length], want) {
			t.Errorf("%v: the received bytes differ", kind)
		}
		p.B.Recv(3, 0, length)
		p.A.Post(verbs.SendWR{ID: 4, Opcode: verbs.WRSend, SGList: []verbs.SGE{p.A.MR.SGE(0, head), far(from, lost), p.A.MR.SGE(head, length-head-lost)}})
		p.A.Expect(rig.OK(4))
		p.B.Expect(rig.OK(3))
		want = append(append(bytes.Clone(sent[:head]), make([]byte, lost)...), sent[head:length-lost]...)
		if !bytes.Equal(p.B.MR.Bytes()[:length], want) {
			t.Errorf("%v: the sent bytes differ", kind)
		}
		if kind == verbs.QPTypeRC {
			nullAnswers(t, p, from)
		}
		rig.Check(t, errors.Join(from.Close(), into.Close()))
	}
}

// nullAnswers checks that response data for a null region is discarded, and that other SGEs of the list get their data.
func nullAnswers(t *testing.T, p *rig.Peers, null *verbs.MR) {
	const head, lost, tail = 3000, 5000, 2000
	copy(p.B.MR.Bytes(), rig.Pattern(head+lost+tail, 2))
	clear(p.A.MR.Bytes())
	read := p.A.Request(verbs.WRRDMARead, &p.B, 0)
	read.SGList = []verbs.SGE{p.A.MR.SGE(0, head), far(null, lost), p.A.MR.SGE(head, tail)}
	p.A.Post(read)
	p.A.Expect(rig.OK(1))
	want := rig.Pattern(head+lost+tail, 2)
	want = append(append(want[:head:head], want[head+lost:]...), 0)
	if !bytes.Equal(p.A.MR.Bytes()[:head+tail+1], want) {
		t.Error("the read bytes differ")
	}
	clear(p.B.MR.Bytes())
	add := p.A.Request(verbs.WRAtomicFetchAndAdd, &p.B, 0)
	add.CompareAdd, add.SGList = 5, []verbs.SGE{far(null, 8)}
	p.A.Post(add)
	p.A.Expect(rig.OK(1))
	if got := p.B.MR.Bytes()[:8]; bytes.Count(got, []byte{0}) != 7 {
		t.Errorf("added: % x", got)
	}
}

// nullRefuses checks that a null region is usable only in its PD, and not by peers.
func nullRefuses(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	null, err := a.PD.AllocNullMR()
	rig.Check(t, err)
	other, err := a.AnotherPD().AllocNullMR()
	rig.Check(t, err)
	rig.Refused(t, null.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite}, verbs.ReregChangeAccess), unix.EINVAL, "null")
	inline := a.Send(1, a.AH(b.End.IPv4), b.QP, null.SGE(0, 8))
	inline.Flags |= verbs.SendInline
	rig.Refused(t, a.QP.PostSend([]verbs.SendWR{inline}), unix.EINVAL)
	if null.Bytes() != nil {
		t.Error("it has memory")
	}
	_, err = (*verbs.PD)(nil).AllocNullMR()
	rig.Refused(t, err, unix.EINVAL, "nil")
	a.Post(a.Send(2, a.AH(b.End.IPv4), b.QP, other.SGE(0, 8)))
	a.Expect(rig.Ended(2, verbs.WCLocProtErr))
	for _, op := range []verbs.Opcode{verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRAtomicFetchAndAdd} {
		p := w.Connect(verbs.QPTypeRC, nil)
		mine, err := p.B.PD.AllocNullMR()
		rig.Check(t, err)
		wr := p.A.Request(op, &p.B, 8)
		wr.RKey, wr.RemoteAddr = mine.RKey(), 0
		p.A.Post(wr)
		p.A.Expect(rig.Ended(1, verbs.WCRemAccessErr))
		rig.Check(t, mine.Close())
		p.Close()
	}
	p := w.Connect(verbs.QPTypeRC, nil)
	mw, err := p.A.PD.AllocMW(verbs.MWType1)
	rig.Check(t, err)
	bind := p.A.Bind(mw, 0, 8, verbs.AccessRemoteRead)
	bind.Bind.MR = null
	p.A.Post(bind)
	p.A.Expect(rig.Ended(1, verbs.WCMWBindErr))
	rig.Check(t, errors.Join(null.Close(), other.Close()))
	rig.Refused(t, null.Close(), verbs.ErrObjectClosed)
}
