package ring

import "testing"

func TestRDMAFields(t *testing.T) {
	s := SendConnected{
		ID: 0xFEDCBA9876543210, Opcode: WRAtomicCmpAndSwp, Flags: SendSignaled | SendFence, SGECount: 1, Imm: 7,
		RemoteAddr: 0x0123456789ABCDEF, RKey: 0x8899AABB, InlineLen: 0x11223344,
	}
	g := ConnectedGeometry(4, 1, 0)
	p, c, _ := sendEnds(t, g, 0)
	atomic, bind, sge := Atomic{1 << 63, 42}, Bind{1 << 40, 5, AccessRemoteWrite}, SGE{Addr: 9, Length: 8, LKey: 3}
	data := p.PutConnected(&s)
	PutAtomic(data, atomic)
	PutSGE(data[AtomicLen:], sge)
	PutBind(p.PutConnected(&s), bind)
	p.Publish()
	var got SendConnected
	data = c.GetConnected(0, &got)
	if got != s || got.InvalidateRKey() != 7 || GetAtomic(data) != atomic || getSGE(data[AtomicLen:]) != sge {
		t.Errorf("%+v %+v", got, GetAtomic(data))
	}
	c.Advance(false)
	if data = c.GetConnected(0, &got); GetBind(data) != bind {
		t.Errorf("%+v", GetBind(data))
	}
}
