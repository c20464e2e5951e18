package ring

import "testing"

func TestRDMAFields(t *testing.T) {
	var s Send
	s.SetRemote(0x0123456789ABCDEF, 0x8899AABB)
	if s.RemoteAddr() != 0x0123456789ABCDEF || s.RKey() != 0x8899AABB {
		t.Errorf("%x %x", s.RemoteAddr(), s.RKey())
	}
	g := ConnectedGeometry(4, 1, 0)
	p, c, _ := sendEnds(t, g, 0)
	s.Opcode, s.Imm = WRAtomicCmpAndSwp, 7
	atomic, bind, sge := Atomic{1 << 63, 42}, Bind{1 << 40, 5, AccessRemoteWrite}, SGE{Addr: 9, Length: 8, LKey: 3}
	data := p.Put(&s)
	PutAtomic(data, atomic)
	PutSGE(data[AtomicLen:], sge)
	PutBind(p.Put(&s), bind)
	p.Publish()
	var got Send
	data = c.Get(&got)
	if got.RemoteAddr() != s.RemoteAddr() || got.RKey() != s.RKey() || got.InvalidateRKey() != 7 || GetAtomic(data) != atomic || GetSGE(data[AtomicLen:]) != sge {
		t.Errorf("%+v %+v", got, GetAtomic(data))
	}
	c.Advance(false)
	if data = c.Get(&got); GetBind(data) != bind {
		t.Errorf("%+v", GetBind(data))
	}
}
