// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var rdmaTests = []rig.Test{
	{Name: "connected messages of all sizes", Run: connectedMessages},
	{Name: "RDMA write", Run: rdmaWrite},
	{Name: "RDMA read", Run: rdmaRead},
	{Name: "atomics", Run: atomics},
	{Name: "immediate data of connected services", Run: connectedImmediate},
	{Name: "connected queue pairs of one card", Run: connectedToItself},
}

// lengths contains message lengths near multiples of 256 bytes (the path MTU), and the length of the region.
var lengths = []int{0, 1, 3, 4, 255, 256, 257, 511, 512, 513, 1024, 4096, 10_000, rig.RegionLen}

// connectedMessages checks messages of all lengths, with one and with several SGEs.
func connectedMessages(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := w.Connect(kind, nil)
		for i, length := range lengths {
			want := rig.Pattern(length, byte(i))
			copy(p.A.MR.Bytes(), want)
			p.B.Recv(uint64(i), 0, rig.RegionLen)
			pieces := []verbs.SGE{p.A.MR.SGE(0, length/3), p.A.MR.SGE(length/3, length-length/3)}
			p.A.Post(verbs.SendWR{ID: 7, Opcode: verbs.WRSend, SGList: pieces})
			wc := p.B.Expect(rig.OK(uint64(i)))[0]
			if int(wc.ByteLen) != length || wc.Opcode != verbs.WCRecv || wc.SrcQP != p.A.QP.Number() || wc.Flags&verbs.WCGRH != 0 {
				t.Errorf("%v, %d bytes: %+v", kind, length, wc)
			}
			if !bytes.Equal(p.B.MR.Bytes()[:length], want) {
				t.Errorf("%v: the %d received bytes differ from the sent ones", kind, length)
			}
			if sent := p.A.Expect(rig.OK(7)); sent[0].Opcode != verbs.WCSend {
				t.Errorf("%v: sent %+v", kind, sent)
			}
		}
	}
}

// rdmaWrite checks that an RDMA WRITE changes only its destination bytes, and consumes no receive.
func rdmaWrite(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := w.Connect(kind, nil)
		for i, length := range lengths {
			want := rig.Pattern(length, byte(i))
			copy(p.A.MR.Bytes(), want)
			clear(p.B.MR.Bytes())
			at := min(17, rig.RegionLen-length)
			wr := p.A.Request(verbs.WRRDMAWrite, &p.B, length)
			wr.RemoteAddr += uint64(at)
			p.B.Recv(3, 0, 0) // before the message, which UC would drop without a receive
			p.A.Post(wr, p.A.Request(verbs.WRSend, &p.B, 0))
			sent := p.A.Expect(rig.OK(1), rig.OK(1))
			p.B.Expect(rig.OK(3)) // the message arrives after the write
			whole := make([]byte, rig.RegionLen)
			copy(whole[at:], want)
			if sent[0].Opcode != verbs.WCRDMAWrite || !bytes.Equal(p.B.MR.Bytes(), whole) {
				t.Errorf("%v: %d bytes: %+v", kind, length, sent[0])
			}
		}
	}
}

func rdmaRead(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	for i, length := range lengths {
		copy(p.B.MR.Bytes(), rig.Pattern(rig.RegionLen, byte(i)))
		clear(p.A.MR.Bytes())
		at := min(17, rig.RegionLen-length)
		wr := p.A.Request(verbs.WRRDMARead, &p.B, length)
		wr.RemoteAddr += uint64(at)
		p.A.Post(wr)
		wc := p.A.Expect(rig.OK(1))[0]
		if wc.Opcode != verbs.WCRDMARead || int(wc.ByteLen) != length {
			t.Errorf("%d bytes: %+v", length, wc)
		}
		whole := make([]byte, rig.RegionLen)
		copy(whole, p.B.MR.Bytes()[at:][:length])
		if !bytes.Equal(p.A.MR.Bytes(), whole) {
			t.Errorf("the %d read bytes differ from the peer's", length)
		}
	}
}

// atomics checks that atomics return the previous value in native byte order, and change it.
func atomics(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	was := func() uint64 { return binary.NativeEndian.Uint64(p.A.MR.Bytes()) }
	there := func() uint64 { return binary.NativeEndian.Uint64(p.B.MR.Bytes()[8:]) }
	binary.NativeEndian.PutUint64(p.B.MR.Bytes()[8:], 1<<40)
	for i, row := range []struct {
		op               verbs.Opcode
		compareAdd, swap uint64
		was, becomes     uint64
		completes        verbs.WCOpcode
	}{
		{verbs.WRAtomicFetchAndAdd, 5, 0, 1 << 40, 1<<40 + 5, verbs.WCFetchAdd},
		{verbs.WRAtomicCmpAndSwp, 4, 9, 1<<40 + 5, 1<<40 + 5, verbs.WCCompSwap}, // the compare value differs
		{verbs.WRAtomicCmpAndSwp, 1<<40 + 5, 1<<64 - 1, 1<<40 + 5, 1<<64 - 1, verbs.WCCompSwap},
		{verbs.WRAtomicFetchAndAdd, 2, 0, 1<<64 - 1, 1, verbs.WCFetchAdd},
	} {
		wr := p.A.Request(row.op, &p.B, 8)
		wr.RemoteAddr += 8
		wr.CompareAdd, wr.Swap = row.compareAdd, row.swap
		p.A.Post(wr)
		wc := p.A.Expect(rig.OK(1))[0]
		if wc.Opcode != row.completes || wc.ByteLen != 8 || was() != row.was || there() != row.becomes {
			t.Errorf("row %d: previous value %#x, new value %#x; %+v", i, was(), there(), wc)
		}
	}
}

// connectedImmediate checks that the completion of a receive contains the immediate data, also of a WRITE, which does
// not write to the memory of the receive.
func connectedImmediate(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := w.Connect(kind, nil)
		copy(p.A.MR.Bytes(), rig.Pattern(600, 1))
		send, write := p.A.Request(verbs.WRSendWithImm, &p.B, 600), p.A.Request(verbs.WRRDMAWriteWithImm, &p.B, 600)
		send.ImmData, write.ImmData = 0x01020304, 0xFFFFFFFF
		p.B.Recv(1, 1000, 1000)
		p.B.Recv(2, 3000, 0)
		p.A.Post(send, write)
		p.A.Expect(rig.OK(1), rig.OK(1))
		for i, wc := range p.B.Expect(rig.OK(1), rig.OK(2)) {
			want := []verbs.WC{{Opcode: verbs.WCRecv, ImmData: 0x01020304}, {Opcode: verbs.WCRecvRDMAWithImm, ImmData: 0xFFFFFFFF}}[i]
			if wc.Opcode != want.Opcode || wc.ImmData != want.ImmData || wc.Flags&verbs.WCWithImm == 0 || wc.ByteLen != 600 {
				t.Errorf("%v: %+v", kind, wc)
			}
		}
		if all := p.B.MR.Bytes(); !bytes.Equal(all[:600], all[1000:1600]) || !bytes.Equal(all[:600], rig.Pattern(600, 1)) {
			t.Errorf("%v: the bytes differ", kind)
		}
	}
}

// connectedToItself checks connections of two queue pairs of the same card, and of a queue pair to itself.
func connectedToItself(t *testing.T, w *rig.World) {
	for _, kind := range rig.ConnectedTypes {
		p := rig.Connect(w.A, w.A, kind, nil)
		self := rig.Peer{Station: w.A, QP: w.A.NewConnected(kind), MR: p.A.MR}
		self.Connect(&self, nil)
		for name, ends := range map[string][2]*rig.Peer{"another": {&p.A, &p.B}, "itself": {&self, &self}} {
			t.Run(fmt.Sprint(kind, " to ", name), func(t *testing.T) {
				copy(p.A.MR.Bytes(), rig.Pattern(1000, 9))
				ends[1].Recv(2, 2000, 1000)
				ends[0].Post(ends[0].Request(verbs.WRSend, ends[1], 1000))
				both := map[uint64]bool{}
				for _, wc := range w.A.Wait(2) {
					both[wc.ID] = wc.Status == verbs.WCSuccess
				}
				if !both[1] || !both[2] || !bytes.Equal(ends[1].MR.Bytes()[2000:3000], rig.Pattern(1000, 9)) {
					t.Errorf("completions %v", both)
				}
			})
		}
	}
}
