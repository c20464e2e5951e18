// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/memory"
	"golang.org/x/sys/unix"
)

// ownMemory is a process file as a program has it: a part of it is mapped.
type ownMemory struct {
	testing.TB
	fd     int
	offset int64
	bytes  []byte
}

// mapOwn maps a part of a process file, and touches it.
func mapOwn(t testing.TB, fd int, offset int64, size int) *ownMemory {
	t.Helper()
	memory, err := unix.Mmap(fd, offset, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(t, err)
	t.Cleanup(func() { check(t, unix.Munmap(memory)) })
	o := &ownMemory{t, fd, offset, memory}
	o.touch()
	return o
}

func (o *ownMemory) touch() { check(o, unix.Madvise(o.bytes, unix.MADV_POPULATE_WRITE)) }

// punch takes all its pages out of the file.
func (o *ownMemory) punch() {
	o.Helper()
	check(o, unix.Fallocate(o.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, o.offset, int64(len(o.bytes))))
}

// testSpace is the size of the process files of tests, in bytes.
const testSpace = 1 << 47

// shareMemory requests the session's process file.
func (r *raw) shareMemory() int {
	r.Helper()
	return r.shareSpace(testSpace)
}

// shareSpace requests a process file of a size.
func (r *raw) shareSpace(size uint64) int {
	r.Helper()
	g, ends := ask(r, proto.ShareMemory, &proto.ShareMemoryRequest{Size: size})
	if g.Size != size || len(ends) != 1 {
		r.Fatalf("%+v, %d descriptors", g, len(ends))
	}
	r.Cleanup(func() { proto.CloseAll(ends) })
	return ends[0]
}

func (r *raw) allocPD() provider.Handle {
	r.Helper()
	g, _ := ask(r, proto.AllocPD, &proto.None{})
	return g.PD
}

// ownRegion has a program's session register memory of the program's own, which it cannot do itself. The program is
// the one that connected last.
func (p *program) ownRegion(d *daemon, offset int64, r provider.AllocMRRequest) (*ownMemory, verbs.LKey) {
	p.Helper()
	c := d.youngest()
	if d.shared[c] == 0 {
		fd, err := c.memory.CreateFile(testSpace)
		check(p, err)
		d.shared[c] = fd
	}
	start := offset &^ int64(pageSize-1)
	o := mapOwn(p, d.shared[c], start, (int(offset-start)+r.Length+pageSize-1)&^(pageSize-1))
	r.PD = 1 << 17 // a session's first object
	grant, err := c.session.RegMapped(r, c.memory.Mapping(uint64(offset), r.Length))
	check(p, err)
	return o, grant.LKey
}

// fallsInto sends from memory that is not there any more, which costs the program its session.
func (p *program) fallsInto(addr uint64, key verbs.LKey) {
	p.Helper()
	err := p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{{Addr: addr, Length: 64, LKey: key}}, AH: p.ah(addressesA[0]), RemoteQPN: p.qp.Number(), RemoteQKey: testQKey}})
	if err != nil && !errors.Is(err, verbs.ErrDeviceFatal) {
		p.Fatal(err)
	}
	event, err := p.ctx.GetAsyncEvent(guard(p))
	check(p, err)
	if event.Type != verbs.EventDeviceFatal {
		p.Fatal(event.Type)
	}
}

// processMappings are those of process files in this process, except what a test has mapped itself.
func processMappings(t testing.TB) (windows int) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/maps")
	check(t, err)
	for _, line := range strings.Split(string(raw), "\n") {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x rw", &from, &to); err == nil && strings.Contains(line, "/memfd:roced") && to-from >= 2*memory.LeastWindow && to-from != memory.MaxArena {
			windows++
		}
	}
	return windows
}

const fullAccess = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead

// TestOwnMemoryTraffic: messages are sent from and received into memory of the program's own, at any address, to the
// byte and no further. Two regions of one page have rights of their own.
func TestOwnMemoryTraffic(t *testing.T) {
	r := newRig(t, anyone)
	a, b := newProgram(t, r.a.dial(t)), newProgram(t, r.b.dial(t))
	const from, to, iova, room = 0x7f12_3456_7ff3, 0x5555_0000_0ffb, 0xdead_beef_0001, 140 // 40 for the GRH
	out, outKey := a.ownRegion(r.a, from, provider.AllocMRRequest{Length: 3000, IOVA: iova})
	in, inKey := b.ownRegion(r.b, to, provider.AllocMRRequest{Length: room, Access: verbs.AccessLocalWrite, IOVA: to})
	_, noWrite := b.ownRegion(r.b, to, provider.AllocMRRequest{Length: room, IOVA: to})
	ah := a.ah(addressesB[0])
	copy(out.bytes[from-out.offset:], "hello from here")
	send := func(sge verbs.SGE) verbs.WCStatus {
		t.Helper()
		check(t, a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{sge}, AH: ah, RemoteQPN: b.qp.Number(), RemoteQKey: testQKey}}))
		return a.status()
	}
	receive := func(key verbs.LKey) {
		t.Helper()
		check(t, b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{{Addr: to, Length: room, LKey: key}}}}))
	}
	receive(inKey)
	if s := send(verbs.SGE{Addr: iova, Length: 100, LKey: outKey}); s != verbs.WCSuccess {
		t.Fatal(s)
	}
	b.completion()
	if got := in.bytes[0xffb+40:][:15]; string(got) != "hello from here" {
		t.Errorf("%q", got)
	}
	if !bytes.Equal(in.bytes[:0xffb], make([]byte, 0xffb)) || !bytes.Equal(in.bytes[0xffb+room:], make([]byte, len(in.bytes)-0xffb-room)) {
		t.Error("bytes beside the region were written")
	}
	receive(noWrite)
	if s := send(verbs.SGE{Addr: iova, Length: 10, LKey: outKey}); s != verbs.WCSuccess {
		t.Fatal(s)
	}
	if s := b.status(); s != verbs.WCLocProtErr {
		t.Errorf("a receive into a region that is only read: %v", s)
	}
	if s := send(verbs.SGE{Addr: iova + 2901, Length: 100, LKey: outKey}); s != verbs.WCLocProtErr {
		t.Errorf("a byte beyond: %v", s)
	}
}

// status is that of the next completion.
func (p *program) status() verbs.WCStatus {
	p.Helper()
	var wcs [1]verbs.WC
	_, err := p.cq.Wait(guard(p), wcs[:])
	check(p, err)
	return wcs[0].Status
}

// TestOwnMemoryIsGivenBack: regions share a mapping, count whole pages, and leave nothing: one by one, and with the
// session.
func TestOwnMemoryIsGivenBack(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	pd, fd := c.allocPD(), c.shareMemory()
	var before hca.Limits
	for _, u := range r.a.Users() {
		before = u.Used.Limits
	}
	memory := mapOwn(t, fd, 0x7f00_0000_0000, 64*pageSize)
	var all []provider.Handle
	reg := func(offset uint64, length int) {
		t.Helper()
		g, _ := ask(c, proto.RegMR, &proto.RegMRRequest{PD: pd, Access: fullAccess, Length: length, IOVA: offset, Offset: offset})
		all = append(all, g.MR)
	}
	const many = 3000
	for i := range uint64(many) {
		reg(uint64(memory.offset)+i*80, 80)
	}
	reg(uint64(memory.offset)+4000, 200) // over an edge of pages
	reg(uint64(memory.offset)+7, 0)
	if used := r.a.Users()[0].Used; used.MRs != many+2 || used.Memory < before.Memory+uint64((many+2)*pageSize) {
		t.Errorf("%+v are used, %+v were before", used, before)
	}
	if n := processMappings(t); n != 1 {
		t.Errorf("%d mappings", n)
	}
	for _, mr := range all[:many] {
		ask(c, proto.DeregMR, &provider.DeregMRRequest{MR: mr})
	}
	if n := processMappings(t); n != 1 {
		t.Errorf("%d mappings with a region left", n)
	}
	ask(c, proto.ReregMRMemory, &proto.ReregMRMemoryRequest{MR: all[many], Flags: verbs.ReregChangeTranslation, Length: pageSize, Offset: uint64(memory.offset)})
	ask(c, proto.DeregMR, &provider.DeregMRRequest{MR: all[many]})
	if used := r.a.Users()[0].Used; used.Memory != before.Memory || used.MRs != 1 || processMappings(t) != 0 {
		t.Errorf("%+v are used, %+v were before; %d mappings", used, before, processMappings(t))
	}
	reg(uint64(memory.offset), pageSize)
	inode := c.inode(fd)
	check(t, c.socket.Close())
	r.a.alone(t, 0)
	if n := processMappings(t); n != 0 || openTimes(t, inode) != 1 {
		t.Errorf("%d mappings are left, %d descriptors", n, openTimes(t, inode))
	}
	memory.bytes[0] = 7 // the program's memory stays
}

func (r *raw) inode(fd int) uint64 {
	r.Helper()
	var s unix.Stat_t
	check(r, unix.Fstat(fd, &s))
	return s.Ino
}

// TestTwoSessionsShareAFile: of one process, by the file that the first was given. It stays until both have gone.
func TestTwoSessionsShareAFile(t *testing.T) {
	r := newRig(t, anyone)
	first, second := r.a.opened(t), r.a.opened(t)
	fd := first.shareMemory()
	check(t, unix.Sendmsg(second.passing(), []byte{0}, unix.UnixRights(fd), nil, 0))
	_, ends := ask(second, proto.ShareMemory, &proto.ShareMemoryRequest{HasFile: true})
	defer proto.CloseAll(ends)
	if len(ends) != 1 || first.inode(ends[0]) != first.inode(fd) {
		t.Fatalf("%d descriptors, or another file", len(ends))
	}
	if err := refused(second, proto.ShareMemory, &proto.ShareMemoryRequest{}); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("asked twice: %v", err)
	}
	memory := mapOwn(t, fd, 1<<40, pageSize)
	pd := second.allocPD()
	check(t, first.socket.Close())
	r.a.alone(t, 1)
	ask(second, proto.RegMR, &proto.RegMRRequest{PD: pd, Access: fullAccess, Length: pageSize, Offset: uint64(memory.offset)})
	check(t, second.socket.Close())
	r.a.alone(t, 0)
	if n := r.a.memory.Files(); n != 0 || processMappings(t) != 0 {
		t.Errorf("%d files are left, %d mappings", n, processMappings(t))
	}
}
