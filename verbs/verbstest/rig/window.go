// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"github.com/roced/roced/verbs"
)

func (p *Peer) Window(kind verbs.MWType) *verbs.MW {
	p.Helper()
	mw, err := p.PD.AllocMW(kind)
	Check(p, err)
	if mw.Type() != kind {
		p.Errorf("type %d, want %d", mw.Type(), kind)
	}
	return mw
}

// Bind returns a request that binds a window to a part of the peer's region, with the next key.
func (p *Peer) Bind(mw *verbs.MW, offset, length uint64, access verbs.AccessFlags) verbs.SendWR {
	return verbs.SendWR{
		ID: 1, Opcode: verbs.WRBindMW, RKey: verbs.IncRKey(mw.RKey()),
		Bind: &verbs.MWBind{MW: mw, MR: p.MR, Addr: p.MR.IOVA() + offset, Length: length, Access: access},
	}
}

// Bound posts a bind and waits for it.
func (p *Peer) Bound(mw *verbs.MW, offset, length uint64, access verbs.AccessFlags) {
	p.Helper()
	p.Post(p.Bind(mw, offset, length, access))
	if wc := p.Expect(OK(1))[0]; wc.Opcode != verbs.WCBindMW {
		p.Errorf("bind: %+v", wc)
	}
}

// Reaches executes a WRITE with a key, and returns its status. Afterwards both queue pairs are in RTS.
func (p *Peers) Reaches(key verbs.RKey, addr uint64, length int) verbs.WCStatus {
	p.A.Helper()
	wr := p.A.Request(verbs.WRRDMAWrite, &p.B, length)
	wr.RKey, wr.RemoteAddr = key, addr
	p.A.Post(wr)
	status := p.A.Wait(1)[0].Status
	if status != verbs.WCSuccess {
		p.Again()
	}
	return status
}

// Again reconnects both queue pairs.
func (p *Peers) Again() {
	p.A.Helper()
	for _, end := range []*Peer{&p.A, &p.B} {
		To(end, end.QP, verbs.QPStateReset)
	}
	p.again++
	p.A.Connect(&p.B, Ahead(p.again))
	p.B.Connect(&p.A, Ahead(p.again))
}
