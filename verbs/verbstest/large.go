// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

const gib = 1 << 30

// largeRegion uses a region that is longer than the longest message. It executes WRITEs, READs and atomics at the ends
// and across multiples of a GiB, where offsets exceed 31 and 32 bits, and checks that the region ends at the right
// byte.
func largeRegion(t *testing.T, w *rig.World) {
	if !w.B.Reaches() {
		return
	}
	const size, iova, length = 5*gib - 4096, 1<<63 - gib - 77, 3000 // addresses cross 1<<63
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	rig.Check(t, err)
	defer func() { rig.Check(t, unix.Munmap(memory)) }()
	mr, err := w.B.PD.RegMRIOVA(memory, iova, verbs.AccessLocalWrite|rig.AllAccess)
	rig.Check(t, err)
	p := w.Connect(verbs.QPTypeRC, nil)
	here := p.A.MR.Bytes()
	for i, at := range []int{0, gib - 1500, 2*gib - 1, 4*gib - 2999, size - length} {
		want := rig.Pattern(length, byte(i))
		copy(here, want)
		write := p.A.Request(verbs.WRRDMAWrite, &p.B, length)
		write.RKey, write.RemoteAddr = mr.RKey(), iova+uint64(at)
		read := write
		read.ID, read.Opcode, read.SGList = 2, verbs.WRRDMARead, []verbs.SGE{p.A.MR.SGE(length, length)}
		p.A.Post(write, read)
		p.A.Expect(rig.OK(1), rig.OK(2))
		if !bytes.Equal(memory[at:at+length], want) || !bytes.Equal(here[length:2*length], want) {
			t.Errorf("at 0x%x: the bytes differ", at)
		}
		p.A.Recv(4, 2*length, length)
		p.B.Post(verbs.SendWR{ID: 3, Opcode: verbs.WRSend, SGList: []verbs.SGE{mr.SGE(at, length)}})
		p.A.Expect(rig.OK(4))
		p.B.Expect(rig.OK(3))
		if !bytes.Equal(here[2*length:3*length], want) {
			t.Errorf("sent from 0x%x: the bytes differ", at)
		}
	}
	for _, addr := range []uint64{iova + size - length + 1, iova + size, iova - 1, iova + size + 4*gib, iova - 4*gib} {
		if got := p.Reaches(mr.RKey(), addr, length); got != verbs.WCRemAccessErr {
			t.Errorf("address 0x%x: %v", addr, got)
		}
	}
	p.Close()
	rig.Check(t, mr.Close())
}
