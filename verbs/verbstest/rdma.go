package verbstest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
)

var rdmaTests = []test{
	{name: "connected messages of all sizes", run: connectedMessages},
	{name: "RDMA write", run: rdmaWrite},
	{name: "RDMA read", run: rdmaRead},
	{name: "atomics", run: atomics},
	{name: "immediate data of connected services", run: connectedImmediate},
	{name: "connected queue pairs of one card", run: connectedToItself},
}

// peers are two queue pairs that are connected to each other, and a region at each end that the other
// may use.
type peers struct{ a, b peer }

type peer struct {
	*station
	qp *verbs.QP
	mr *verbs.MR
}

const regionLen = 64 << 10

// connect makes peers on the world's two stations. change, unless nil, is for the attributes of both.
func (w *world) connect(kind verbs.QPType, change func(*verbs.QPAttr)) *peers {
	w.a.Helper()
	return connect(w.a, w.b, kind, change)
}

func connect(a, b *station, kind verbs.QPType, change func(*verbs.QPAttr)) *peers {
	a.Helper()
	p := &peers{a.peer(kind), b.peer(kind)}
	p.a.connect(&p.b, change)
	p.b.connect(&p.a, change)
	return p
}

func (s *station) peer(kind verbs.QPType) peer {
	s.Helper()
	mr, err := s.pd.AllocMR(regionLen, verbs.AccessLocalWrite|allAccess|verbs.AccessMWBind)
	check(s, err)
	return peer{s, s.newConnected(kind), mr}
}

// connect brings a peer to RTS.
func (p *peer) connect(other *peer, change func(*verbs.QPAttr)) {
	p.Helper()
	attr := p.connection(other.end.IPv4, other.qp.Number())
	if change != nil {
		change(&attr)
	}
	check(p, p.qp.Connect(&attr))
}

// post posts requests to the peer's queue pair, signaled.
func (p *peer) post(wrs ...verbs.SendWR) {
	p.Helper()
	for i := range wrs {
		wrs[i].Flags |= verbs.SendSignaled
	}
	check(p, p.qp.PostSend(wrs))
}

// recv posts a receive to a part of the peer's region.
func (p *peer) recv(id uint64, offset, length int) {
	p.Helper()
	check(p, p.qp.PostRecv([]verbs.RecvWR{{ID: id, SGList: []verbs.SGE{p.mr.SGE(offset, length)}}}))
}

// request is one about as many bytes at the start of both regions.
func (p *peer) request(op verbs.Opcode, other *peer, length int) verbs.SendWR {
	wr := verbs.SendWR{ID: 1, Opcode: op, RemoteAddr: other.mr.IOVA(), RKey: other.mr.RKey()}
	if length > 0 {
		wr.SGList = []verbs.SGE{p.mr.SGE(0, length)}
	}
	return wr
}

// pattern is bytes of which no two parts are alike.
func pattern(length int, seed byte) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*31 ^ seed
	}
	return b
}

// lengths are those around the borders of packets of 256 bytes, and of what a region holds.
var lengths = []int{0, 1, 3, 4, 255, 256, 257, 511, 512, 513, 1024, 4096, 10_000, regionLen}

// Messages arrive whole, for every length, whether the memory is one piece or several.
func connectedMessages(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := w.connect(kind, nil)
		for i, length := range lengths {
			want := pattern(length, byte(i))
			copy(p.a.mr.Bytes(), want)
			p.b.recv(uint64(i), 0, regionLen)
			pieces := []verbs.SGE{p.a.mr.SGE(0, length/3), p.a.mr.SGE(length/3, length-length/3)}
			p.a.post(verbs.SendWR{ID: 7, Opcode: verbs.WRSend, SGList: pieces})
			wc := p.b.expect(ok(uint64(i)))[0]
			if int(wc.ByteLen) != length || wc.Opcode != verbs.WCRecv || wc.SrcQP != p.a.qp.Number() || wc.Flags&verbs.WCGRH != 0 {
				t.Errorf("%v, %d bytes: %+v", kind, length, wc)
			}
			if !bytes.Equal(p.b.mr.Bytes()[:length], want) {
				t.Errorf("%v: %d bytes are not those that were sent", kind, length)
			}
			if sent := p.a.expect(ok(7)); sent[0].Opcode != verbs.WCSend {
				t.Errorf("%v: sent %+v", kind, sent)
			}
		}
	}
}

// An RDMA write changes the bytes that it names and no others, and takes no receive.
func rdmaWrite(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := w.connect(kind, nil)
		for i, length := range lengths {
			want := pattern(length, byte(i))
			copy(p.a.mr.Bytes(), want)
			clear(p.b.mr.Bytes())
			at := min(17, regionLen-length)
			wr := p.a.request(verbs.WRRDMAWrite, &p.b, length)
			wr.RemoteAddr += uint64(at)
			p.b.recv(3, 0, 0) // first: over UC a message without one is lost
			p.a.post(wr, p.a.request(verbs.WRSend, &p.b, 0))
			sent := p.a.expect(ok(1), ok(1))
			p.b.expect(ok(3)) // the message comes behind the write
			whole := make([]byte, regionLen)
			copy(whole[at:], want)
			if sent[0].Opcode != verbs.WCRDMAWrite || !bytes.Equal(p.b.mr.Bytes(), whole) {
				t.Errorf("%v: %d bytes: %+v", kind, length, sent[0])
			}
		}
	}
}

func rdmaRead(t *testing.T, w *world) {
	p := w.connect(verbs.QPTypeRC, nil)
	for i, length := range lengths {
		copy(p.b.mr.Bytes(), pattern(regionLen, byte(i)))
		clear(p.a.mr.Bytes())
		at := min(17, regionLen-length)
		wr := p.a.request(verbs.WRRDMARead, &p.b, length)
		wr.RemoteAddr += uint64(at)
		p.a.post(wr)
		wc := p.a.expect(ok(1))[0]
		if wc.Opcode != verbs.WCRDMARead || int(wc.ByteLen) != length {
			t.Errorf("%d bytes: %+v", length, wc)
		}
		whole := make([]byte, regionLen)
		copy(whole, p.b.mr.Bytes()[at:][:length])
		if !bytes.Equal(p.a.mr.Bytes(), whole) {
			t.Errorf("%d bytes are not the peer's", length)
		}
	}
}

// Atomics give what was there, in the host's order, and change it.
func atomics(t *testing.T, w *world) {
	p := w.connect(verbs.QPTypeRC, nil)
	was := func() uint64 { return binary.NativeEndian.Uint64(p.a.mr.Bytes()) }
	there := func() uint64 { return binary.NativeEndian.Uint64(p.b.mr.Bytes()[8:]) }
	binary.NativeEndian.PutUint64(p.b.mr.Bytes()[8:], 1<<40)
	for i, row := range []struct {
		op               verbs.Opcode
		compareAdd, swap uint64
		was, becomes     uint64
		completes        verbs.WCOpcode
	}{
		{verbs.WRAtomicFetchAndAdd, 5, 0, 1 << 40, 1<<40 + 5, verbs.WCFetchAdd},
		{verbs.WRAtomicCmpAndSwp, 4, 9, 1<<40 + 5, 1<<40 + 5, verbs.WCCompSwap}, // it is another
		{verbs.WRAtomicCmpAndSwp, 1<<40 + 5, 1<<64 - 1, 1<<40 + 5, 1<<64 - 1, verbs.WCCompSwap},
		{verbs.WRAtomicFetchAndAdd, 2, 0, 1<<64 - 1, 1, verbs.WCFetchAdd},
	} {
		wr := p.a.request(row.op, &p.b, 8)
		wr.RemoteAddr += 8
		wr.CompareAdd, wr.Swap = row.compareAdd, row.swap
		p.a.post(wr)
		wc := p.a.expect(ok(1))[0]
		if wc.Opcode != row.completes || wc.ByteLen != 8 || was() != row.was || there() != row.becomes {
			t.Errorf("row %d: it was %#x, is %#x; %+v", i, was(), there(), wc)
		}
	}
}

// Immediate data comes with a receive's completion, of a write too, which takes a receive and writes
// nothing to its memory.
func connectedImmediate(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := w.connect(kind, nil)
		copy(p.a.mr.Bytes(), pattern(600, 1))
		send, write := p.a.request(verbs.WRSendWithImm, &p.b, 600), p.a.request(verbs.WRRDMAWriteWithImm, &p.b, 600)
		send.ImmData, write.ImmData = 0x01020304, 0xFFFFFFFF
		p.b.recv(1, 1000, 1000)
		p.b.recv(2, 3000, 0)
		p.a.post(send, write)
		p.a.expect(ok(1), ok(1))
		for i, wc := range p.b.expect(ok(1), ok(2)) {
			want := []verbs.WC{{Opcode: verbs.WCRecv, ImmData: 0x01020304}, {Opcode: verbs.WCRecvRDMAWithImm, ImmData: 0xFFFFFFFF}}[i]
			if wc.Opcode != want.Opcode || wc.ImmData != want.ImmData || wc.Flags&verbs.WCWithImm == 0 || wc.ByteLen != 600 {
				t.Errorf("%v: %+v", kind, wc)
			}
		}
		if all := p.b.mr.Bytes(); !bytes.Equal(all[:600], all[1000:1600]) || !bytes.Equal(all[:600], pattern(600, 1)) {
			t.Errorf("%v: the bytes differ", kind)
		}
	}
}

// Both queue pairs may be on one card, and even one queue pair may be its own peer.
func connectedToItself(t *testing.T, w *world) {
	for _, kind := range connectedTypes {
		p := connect(w.a, w.a, kind, nil)
		self := peer{w.a, w.a.newConnected(kind), p.a.mr}
		self.connect(&self, nil)
		for name, ends := range map[string][2]*peer{"another": {&p.a, &p.b}, "itself": {&self, &self}} {
			t.Run(fmt.Sprint(kind, " to ", name), func(t *testing.T) {
				copy(p.a.mr.Bytes(), pattern(1000, 9))
				ends[1].recv(2, 2000, 1000)
				ends[0].post(ends[0].request(verbs.WRSend, ends[1], 1000))
				both := map[uint64]bool{}
				for _, wc := range w.a.wait(2) {
					both[wc.ID] = wc.Status == verbs.WCSuccess
				}
				if !both[1] || !both[2] || !bytes.Equal(ends[1].mr.Bytes()[2000:3000], pattern(1000, 9)) {
					t.Errorf("completions %v", both)
				}
			})
		}
	}
}
