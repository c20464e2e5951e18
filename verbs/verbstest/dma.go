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

var dmaTests = []rig.Test{
	{Name: "mapped memory", Run: mappedMemory},
	{Name: "mapped pages and lists", Run: mappedLists},
	{Name: "mapping errors", Run: mappingErrors},
	{Name: "directions of mappings", Run: mappingDirections},
	{Name: "coherent memory", Run: coherentMemory},
	{Name: "local DMA key for peers", Run: dmaKeyForPeers},
}

// mapped returns an SGE of mapped memory.
func mapped(pd *verbs.PD, addr kernel.DMAAddr, length int) verbs.SGE {
	return verbs.SGE{Addr: uint64(addr), Length: uint32(length), LKey: kernel.LocalDMALKey}
}

// Mapped memory can be used in any SGE: for sends of both kinds of queue pairs, inline data, receives and reads. The PD
// of the memory's region is irrelevant.
func mappedMemory(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	foreign, err := p.A.AnotherPD().AllocMR(3000, 0)
	rig.Check(t, err)
	copy(foreign.Bytes(), rig.Pattern(3000, 1))
	into := p.B.MR.Bytes()[100:4000]
	to := kernel.DMAMapSingle(p.B.Ctx, into, kernel.DMAFromDevice)
	rig.Check(t, kernel.DMAMappingError(p.B.Ctx, to))
	from := kernel.DMAMapSingle(p.A.Ctx, foreign.Bytes(), kernel.DMAToDevice)
	rig.Check(t, kernel.DMAMappingError(p.A.Ctx, from))
	rig.Check(t, p.B.QP.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{mapped(p.B.PD, to, len(into))}}}))
	kernel.DMASyncSingleForDevice(p.A.Ctx, from, 3000, kernel.DMAToDevice)
	p.A.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRSend, SGList: []verbs.SGE{mapped(p.A.PD, from+1000, 2000), mapped(p.A.PD, from, 1000)}})
	p.A.Expect(rig.OK(1))
	p.B.Expect(rig.OK(2))
	kernel.DMASyncSingleForCPU(p.B.Ctx, to, len(into), kernel.DMAFromDevice)
	if want := foreign.Bytes(); !bytes.Equal(into[:2000], want[1000:]) || !bytes.Equal(into[2000:3000], want[:1000]) {
		t.Error("receive: wrong bytes")
	}
	read := p.B.Request(verbs.WRRDMARead, &p.A, 0)
	read.SGList = []verbs.SGE{mapped(p.B.PD, to, 500)}
	copy(p.A.MR.Bytes(), rig.Pattern(500, 2))
	p.B.Post(read)
	p.B.Expect(rig.OK(1))
	if !bytes.Equal(into[:500], rig.Pattern(500, 2)) {
		t.Error("read: wrong bytes")
	}
	for _, flags := range []verbs.SendFlags{0, verbs.SendInline} { // of datagrams
		w.B.Receive(0)
		wr := w.A.Send(3, w.A.AH(w.B.End.IPv4), w.B.QP, mapped(w.A.PD, from, 50))
		wr.Flags |= verbs.SendSignaled | flags
		w.A.Post(wr)
		w.A.Expect(rig.OK(3))
		if wc := w.B.Expect(rig.OK(0))[0]; wc.ByteLen != 90 || !bytes.Equal(w.B.MR.Bytes()[40:90], foreign.Bytes()[:50]) {
			t.Errorf("datagram of %d bytes", wc.ByteLen)
		}
	}
	kernel.DMAUnmapSingle(p.A.Ctx, from, 3000, kernel.DMAToDevice)
	rig.Check(t, foreign.Close())
	p.A.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRSend, SGList: []verbs.SGE{mapped(p.A.PD, from, 1)}})
	p.A.Expect(rig.Ended(1, verbs.WCLocProtErr)) // the memory was freed, which unmaps the address
}

// Pages and lists are mapped to addresses of their bytes, with the same offsets within pages.
func mappedLists(t *testing.T, w *rig.World) {
	c, memory := w.A.Ctx, w.A.MR.Bytes()
	start := kernel.DMAMapSingle(c, memory, kernel.DMAToDevice)
	page := kernel.DMAMapPage(c, memory[4096:8192], 100, 200, kernel.DMAToDevice)
	if page != start+4196 || page%4096 != 100 {
		t.Errorf("a page at %#x of memory at %#x", page, start)
	}
	kernel.DMAUnmapPage(c, page, 200, kernel.DMAToDevice)
	list := []kernel.SG{{Memory: memory[10:20]}, {Memory: memory[8192:8292]}}
	if n := kernel.DMAMapSG(c, list, kernel.DMAToDevice); n != 2 {
		t.Fatalf("%d entries are mapped", n)
	}
	if kernel.SGDMAAddress(c, &list[0]) != start+10 || kernel.SGDMALen(c, &list[0]) != 10 || kernel.SGDMAAddress(c, &list[1]) != start+8192 || kernel.SGDMALen(c, &list[1]) != 100 {
		t.Errorf("%+v", list)
	}
	kernel.DMAUnmapSG(c, list, kernel.DMAToDevice)
	if kernel.SGDMAAddress(c, &list[0]) != 0 || kernel.SGDMALen(c, &list[1]) != 0 {
		t.Error("an entry is still mapped after it was unmapped")
	}
	if list = append(list, kernel.SG{Memory: make([]byte, 1)}); kernel.DMAMapSG(c, list, kernel.DMAToDevice) != 0 || kernel.SGDMALen(c, &list[0]) != 0 {
		t.Error("a list with an invalid entry was mapped")
	}
}

// The address returned for memory that cannot be mapped contains the reason. No request accepts it.
func mappingErrors(t *testing.T, w *rig.World) {
	c, memory := w.A.Ctx, w.A.MR.Bytes()
	for says, row := range map[string]struct {
		addr  kernel.DMAAddr
		errno unix.Errno
	}{
		"not belong to the s": {kernel.DMAMapSingle(c, make([]byte, 10), kernel.DMAToDevice), unix.EOPNOTSUPP},
		"the length is 0":     {kernel.DMAMapSingle(c, memory[:0], kernel.DMAToDevice), unix.EINVAL},
		"must be DMABidirec":  {kernel.DMAMapSingle(c, memory, kernel.DMANone), unix.EINVAL},
		"the bytes exceed":    {kernel.DMAMapPage(c, memory[:4096], 4000, 97, kernel.DMAToDevice), unix.EINVAL},
		"the page":            {kernel.DMAMapPage(c, memory[:4096], -1, 1, kernel.DMAToDevice), unix.EINVAL},
	} {
		rig.Refused(t, kernel.DMAMappingError(c, row.addr), row.errno, says)
		w.A.Post(w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP, mapped(w.A.PD, row.addr, 1)))
		w.A.Expect(rig.Ended(1, verbs.WCLocProtErr))
		rig.To(t, w.A.QP, verbs.QPStateRTS)
	}
}

// The card does not write to memory mapped DMAToDevice, and does not read from memory mapped DMAFromDevice.
func mappingDirections(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	memory := p.B.MR.Bytes()[:100]
	addr := func(d kernel.DMADirection) verbs.SGE {
		return mapped(p.B.PD, kernel.DMAMapSingle(p.B.Ctx, memory, d), len(memory))
	}
	for d, may := range map[kernel.DMADirection]struct{ read, written bool }{
		kernel.DMABidirectional: {true, true}, kernel.DMAToDevice: {true, false}, kernel.DMAFromDevice: {false, true},
	} {
		copy(memory, rig.Pattern(100, 1))
		p.A.Recv(2, 0, 100)
		p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRSend, SGList: []verbs.SGE{addr(d)}})
		if got := p.B.Wait(1)[0].Status == verbs.WCSuccess; got != may.read {
			t.Errorf("direction %d: read: %v", d, got)
		} else if got {
			p.A.Expect(rig.OK(2))
		}
		p.Again()
		copy(p.A.MR.Bytes(), rig.Pattern(100, 2))
		read := p.B.Request(verbs.WRRDMARead, &p.A, 0)
		read.SGList = []verbs.SGE{addr(d)}
		p.B.Post(read)
		if got := p.B.Wait(1)[0].Status == verbs.WCSuccess; got != may.written || got == bytes.Equal(memory, rig.Pattern(100, 1)) {
			t.Errorf("direction %d: written: %v", d, got)
		}
		p.Again()
		copy(memory, rig.Pattern(100, 1))
		rig.Check(t, p.B.QP.PostRecv([]verbs.RecvWR{{ID: 3, SGList: []verbs.SGE{addr(d)}}}))
		p.A.Post(p.A.Request(verbs.WRSend, &p.B, 100))
		if got := p.B.Wait(1)[0].Status == verbs.WCSuccess; got != may.written || got == bytes.Equal(memory, rig.Pattern(100, 1)) {
			t.Errorf("direction %d: received into: %v", d, got)
		}
		p.A.Wait(1)
		p.Again()
	}
}

// Coherent memory is zeroed, has no key except the local DMA key, and is freed once.
func coherentMemory(t *testing.T, w *rig.World) {
	c := w.A.Ctx
	memory, addr, err := kernel.DMAAllocCoherent(c, 5000)
	rig.Check(t, err)
	if len(memory) != 5000 || !bytes.Equal(memory, make([]byte, 5000)) || addr%4096 != 0 || kernel.DMAMapSingle(c, memory, kernel.DMABidirectional) != addr {
		t.Errorf("%d bytes at %#x", len(memory), addr)
	}
	copy(memory, "hello")
	w.B.Receive(0)
	w.A.Post(w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP, mapped(w.A.PD, addr, 5)))
	w.A.Expect(rig.OK(1))
	w.B.Expect(rig.OK(0))
	if got := w.B.MR.Bytes()[40:45]; string(got) != "hello" {
		t.Errorf("%q", got)
	}
	rig.Refused(t, kernel.DMAFreeCoherent(c, memory, addr+1), unix.EINVAL)
	rig.Refused(t, kernel.DMAFreeCoherent(c, memory[1:], addr), unix.EINVAL)
	rig.Refused(t, kernel.DMAFreeCoherent(c, w.A.MR.Bytes(), kernel.DMAMapSingle(c, w.A.MR.Bytes(), kernel.DMABidirectional)), unix.EINVAL)
	rig.Check(t, kernel.DMAFreeCoherent(c, memory, addr))
	rig.Refused(t, kernel.DMAFreeCoherent(c, memory, addr), unix.EINVAL)
	for _, size := range []int{0, -1, 1<<30 + 1} {
		_, _, err := kernel.DMAAllocCoherent(c, size)
		rig.Refused(t, err, unix.EINVAL, "there can be 1 to")
	}
}

// Peers cannot use the local DMA key, whatever address they use.
func dmaKeyForPeers(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	addr := kernel.DMAMapSingle(p.B.Ctx, p.B.MR.Bytes(), kernel.DMABidirectional)
	for _, at := range []uint64{uint64(addr), 0, p.B.MR.IOVA()} {
		if got := p.Reaches(verbs.RKey(kernel.LocalDMALKey), at, 8); got != verbs.WCRemAccessErr {
			t.Errorf("address %#x: %v", at, got)
		}
	}
	p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRLocalInv, InvalidateRKey: verbs.RKey(kernel.LocalDMALKey)})
	p.B.Expect(rig.Ended(1, verbs.WCMWBindErr))
}
