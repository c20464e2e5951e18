// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// memoryFile is a memfd of a program's, mapped whole.
func memoryFile(t testing.TB, size int) *ownMemory {
	t.Helper()
	fd, err := unix.MemfdCreate("shared", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	check(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	check(t, unix.Ftruncate(fd, int64(size)))
	return mapOwn(t, fd, 0, size)
}

// pass passes a file for the next command.
func (r *raw) pass(fd int) {
	r.Helper()
	check(r, unix.Sendmsg(r.passing(), []byte{0}, unix.UnixRights(fd), nil, 0))
}

// fileRegion has a program's session register a part of a file, which it cannot do itself. The program is the one that
// connected last.
func (p *program) fileRegion(d *daemon, fd int, offset uint64, r provider.AllocMRRequest) provider.MRGrant {
	p.Helper()
	c := d.youngest()
	r.PD = 1 << 17 // a session's first object
	grant, err := c.session.RegMapped(r, c.memory.PassedMapping(fd, offset, r.Length))
	check(p, err)
	return grant
}

// TestMemoryFileTraffic: messages go from one file that the program shares with others, and into another, to the byte
// and no further.
func TestMemoryFileTraffic(t *testing.T) {
	r := newRig(t, anyone)
	a, b := newProgram(t, r.a.dial(t)), newProgram(t, r.b.dial(t))
	name := fmt.Sprintf("/dev/shm/roced-test-%d", os.Getpid())
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	check(t, err)
	check(t, os.Remove(name))
	defer file.Close()
	check(t, file.Truncate(1<<20))
	in, out := mapOwn(t, int(file.Fd()), 0, 1<<20), memoryFile(t, 8*pageSize)
	const from, to, room, length = 5000, 70_001, 140, 100
	sends := a.fileRegion(r.a, out.fd, from, provider.AllocMRRequest{Length: length, IOVA: 77})
	receives := b.fileRegion(r.b, in.fd, to, provider.AllocMRRequest{Length: room, IOVA: to, Access: verbs.AccessLocalWrite})
	copy(out.bytes[from:], "from a file that others have")
	check(t, b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{{Addr: to, Length: room, LKey: receives.LKey}}}}))
	send := func(addr uint64) verbs.WCStatus {
		check(t, a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{{Addr: addr, Length: length, LKey: sends.LKey}},
			AH: a.ah(addressesB[0]), RemoteQPN: b.qp.Number(), RemoteQKey: testQKey}}))
		return a.status()
	}
	if s := send(77); s != verbs.WCSuccess {
		t.Fatal(s)
	}
	b.completion()
	if got := string(in.bytes[to+40:][:28]); got != "from a file that others have" {
		t.Errorf("%q", got)
	}
	for i, value := range in.bytes {
		if value != 0 && (i < to || i >= to+room) {
			t.Fatalf("byte %d, beside the region, was written", i)
		}
	}
	if s := send(78); s != verbs.WCLocProtErr {
		t.Errorf("beyond the region: %v", s)
	}
	check(t, errors.Join(a.ctx.Close(), b.ctx.Close()))
	r.a.alone(t, 0)
	eventually(t, "no file is kept", func() bool { return r.a.memory.Files() == 0 && r.b.memory.Files() == 0 })
}

// pipe is a FIFO of tmpfs, open for reading and writing.
func pipe(t *testing.T) int {
	t.Helper()
	name := fmt.Sprintf("/dev/shm/roced-test-pipe-%d", os.Getpid())
	check(t, unix.Mkfifo(name, 0o600))
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
	check(t, errors.Join(err, os.Remove(name)))
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// TestFilesThatAreNoMemory: other files are refused with a reason, and are not kept open.
func TestFilesThatAreNoMemory(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	pd := c.allocPD()
	process := c.shareMemory()
	mapOwn(t, process, 0, pageSize)
	open := func(path string, flags int) int {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		check(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	sealed := func(seals int) int {
		fd, err := unix.MemfdCreate("sealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		check(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		check(t, unix.Fallocate(fd, 0, 0, int64(pageSize)))
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		check(t, err)
		return fd
	}
	huge, err := unix.MemfdCreate("huge", unix.MFD_CLOEXEC|unix.MFD_HUGETLB)
	check(t, err)
	defer unix.Close(huge)
	disk, err := os.Create(t.TempDir() + "/file")
	check(t, err)
	defer disk.Close()
	check(t, disk.Truncate(int64(pageSize)))
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	defer proto.CloseAll(ends[:])
	good := memoryFile(t, 4*pageSize)
	again := fmt.Sprintf("/proc/self/fd/%d", good.fd)
	before := r.a.Users()[0].Used
	for name, one := range map[string]struct {
		fd     int
		reason string
	}{
		"a file of a disk":             {int(disk.Fd()), "not one of memory"},
		"a directory":                  {open("/dev/shm", unix.O_RDONLY), "not open for reading and writing"},
		"a socket":                     {ends[0], "not one of memory"},
		"a device":                     {open("/dev/zero", unix.O_RDWR), "not one of memory"},
		"a pipe with a name":           {pipe(t), "not one of memory"},
		"huge pages":                   {huge, "huge pages"},
		"open for reading":             {open(again, unix.O_RDONLY), "not open for reading and writing"},
		"open for writing":             {open(again, unix.O_WRONLY), "not open for reading and writing"},
		"a path":                       {open(again, unix.O_PATH), "not open for reading and writing"},
		"sealed against writing":       {sealed(unix.F_SEAL_WRITE), "sealed against writing"},
		"sealed against later writing": {sealed(unix.F_SEAL_FUTURE_WRITE), "sealed against writing"},
		"the process file":             {process, "by reg_mr"},
	} {
		c.pass(one.fd)
		err := refused(c, proto.RegFileMR, &proto.RegMRRequest{PD: pd, Length: pageSize})
		if err == nil || !strings.Contains(err.Error(), one.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, unix.Fallocate(good.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(pageSize), int64(pageSize)))
	end := uint64(4 * pageSize)
	for _, part := range []struct {
		offset uint64
		length int
		errno  unix.Errno
	}{
		{uint64(pageSize), 1, unix.EFAULT}, {0, 4 * pageSize, unix.EFAULT}, {end, 1, unix.EFAULT}, {end - 1, 2, unix.EFAULT}, {1 << 46, 1, unix.EFAULT},
		{1 << 47, 1, unix.EFAULT}, {proto.MaxProcessFile, 1, unix.EINVAL}, {math.MaxUint64, 2, unix.EINVAL}, {1 << 63, math.MinInt64, unix.EINVAL}, {0, math.MaxInt64, unix.EINVAL},
	} {
		c.pass(good.fd)
		refusedFirst(c, fmt.Sprint(part), proto.RegFileMR, &proto.RegMRRequest{PD: pd, Offset: part.offset, Length: part.length}, verbs.ErrInvalid, part.errno)
	}
	c.pass(good.fd)
	refusedFirst(c, "no PD", proto.RegFileMR, &proto.RegMRRequest{PD: 77, Length: 1}, verbs.ErrInvalid, unix.EINVAL)
	refusedFirst(c, "no file", proto.RegFileMR, &proto.RegMRRequest{PD: pd, Length: 1}, verbs.ErrInvalid, unix.EINVAL)
	refusedFirst(c, "no file", proto.ReregFileMR, &proto.ReregMRMemoryRequest{MR: 1, Flags: verbs.ReregChangeTranslation, Length: 1}, verbs.ErrInvalid, unix.EINVAL)
	eventually(t, "nothing is kept", func() bool { return r.a.Users()[0].Used == before && r.a.memory.Files() == 1 })
}

// TestMemoryFileOfSeveral: programs of one user and of another have the same file; each is charged for its registrations. A
// region goes on to another file.
func TestMemoryFileOfSeveral(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	file, second := memoryFile(t, 8*pageSize), memoryFile(t, pageSize)
	one, same, other := r.a.openedAs(t, 4711), r.a.openedAs(t, 4711), r.a.openedAs(t, 4712)
	var regions []provider.Handle
	for _, c := range []*raw{one, one, same, other} {
		c.pass(file.fd)
		g, _ := ask(c, proto.RegFileMR, &proto.RegMRRequest{PD: c.allocPD(), Offset: 5, Length: pageSize, Access: fullAccess})
		regions = append(regions, g.MR)
	}
	if n := r.a.memory.Files(); n != 2 {
		t.Errorf("%d files, of two users", n)
	}
	one.pass(second.fd)
	ask(one, proto.ReregFileMR, &proto.ReregMRMemoryRequest{MR: regions[0], Flags: verbs.ReregChangeTranslation, Length: pageSize})
	ask(one, proto.DeregMR, &provider.DeregMRRequest{MR: regions[1]})
	check(t, same.socket.Close())
	eventually(t, "a file goes with its last region", func() bool { return r.a.memory.Files() == 2 })
	ask(one, proto.DeregMR, &provider.DeregMRRequest{MR: regions[0]})
	check(t, other.socket.Close())
	eventually(t, "all files go", func() bool { return r.a.memory.Files() == 0 })
	one.allocPD()
}

// TestMemoryFileCutOff: a program takes pages out of a file, or cuts it off, while the card uses it. It loses its
// session, the service makes no page for it, and neighbours notice nothing.
func TestMemoryFileCutOff(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	stillWell := neighbours(t, r)
	for i, take := range []func(*ownMemory){
		(*ownMemory).punch,
		func(o *ownMemory) { check(t, unix.Ftruncate(o.fd, 0)) },
		func(o *ownMemory) { check(t, errors.Join(unix.Ftruncate(o.fd, 0), unix.Ftruncate(o.fd, 1<<20))) },
	} {
		p := newProgram(t, r.a.dial(t))
		file := memoryFile(t, 64*pageSize)
		region := p.fileRegion(r.a, file.fd, 0, provider.AllocMRRequest{Length: 64 * pageSize, Access: fullAccess})
		take(file)
		p.fallsInto(5*uint64(pageSize), region.LKey)
		var s unix.Stat_t
		check(t, unix.Fstat(file.fd, &s))
		if s.Blocks != 0 {
			t.Errorf("the service has made %d blocks", s.Blocks)
		}
		check(t, p.ctx.Close())
		r.a.alone(t, 1)
		if i == 0 {
			barred := r.a.opened(t)
			barred.pass(file.fd)
			refusedFirst(barred, "after that", proto.RegFileMR, &proto.RegMRRequest{PD: barred.allocPD(), Length: 1}, verbs.ErrPermission, unix.EPERM)
			check(t, barred.socket.Close())
		}
	}
	stillWell()
	eventually(t, "all files go", func() bool { return r.a.memory.Files() == 0 })
}

// TestMemoryFileCutOffUnderSeveral: a file that several programs of a user have is cut off. All that have it end, and
// that counts as one: others of the user go on.
func TestMemoryFileCutOffUnderSeveral(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	bystander := r.a.opened(t)
	bystander.shareMemory()
	file := memoryFile(t, pageSize)
	var programs []*program
	var keys []verbs.LKey
	var ahs []*verbs.AH
	for range 3 {
		p := newProgram(t, r.a.dial(t))
		ahs = append(ahs, p.ah(addressesA[0]))
		programs, keys = append(programs, p), append(keys, p.fileRegion(r.a, file.fd, 0, provider.AllocMRRequest{Length: pageSize}).LKey)
	}
	check(t, unix.Ftruncate(file.fd, 0))
	for i, p := range programs {
		_ = p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{{Length: 64, LKey: keys[i]}}, AH: ahs[i], RemoteQPN: p.qp.Number(), RemoteQKey: testQKey}})
	}
	for _, p := range programs {
		if event, err := p.ctx.GetAsyncEvent(guard(t)); err != nil || event.Type != verbs.EventDeviceFatal {
			t.Fatal(event.Type, err)
		}
		check(t, p.ctx.Close())
	}
	r.a.alone(t, 1)
	bystander.allocPD()
	if r.a.memory.Files() == 0 {
		t.Error("the other's process file has gone")
	}
}

// TestMemoryFilesOfSeveralSizes: the total size of a user's files is limited, when one more is registered; and one
// that somebody else makes larger ends the sessions that have it, and no others.
func TestMemoryFilesOfSeveralSizes(t *testing.T) {
	const most = 8 << 20
	r := newRig(t, Config{Limits: peer.Limits{Limits: hca.Limits{Memory: most}}, PrivilegedGroup: -1})
	r.a.open(t)
	one, other := r.a.opened(t), r.a.opened(t)
	own := other.shareMemory()
	mapOwn(t, own, 0, pageSize)
	ask(other, proto.RegMR, &proto.RegMRRequest{PD: other.allocPD(), Length: pageSize})
	pd, first, second := one.allocPD(), memoryFile(t, most), memoryFile(t, 3*most/2)
	one.pass(first.fd)
	ask(one, proto.RegFileMR, &proto.RegMRRequest{PD: pd, Length: pageSize})
	one.pass(second.fd)
	refusedFirst(one, "a second file", proto.RegFileMR, &proto.RegMRRequest{PD: pd, Length: pageSize}, verbs.ErrLimit, unix.ENOMEM)
	check(t, unix.Fallocate(first.fd, 0, 0, 3*most))
	m, _, err := one.Receive()
	check(t, err)
	if cause, _ := proto.DecodeFailure(m.Body); m.Kind != proto.Ended || !strings.Contains(cause.Error(), "twice as many bytes") {
		t.Errorf("%+v: %v", m, cause)
	}
	other.allocPD()
	small := memoryFile(t, pageSize)
	check(t, one.socket.Close())
	eventually(t, "the large file goes", func() bool { return r.a.memory.Files() == 1 })
	other.pass(small.fd)
	ask(other, proto.RegFileMR, &proto.RegMRRequest{PD: other.allocPD(), Length: pageSize}) // no user is barred
}

// TestMemoryFileThatGrows: the unregistered pages of a file are limited too, when it is registered and later.
func TestMemoryFileThatGrows(t *testing.T) {
	const most = 8 << 20
	var said locked
	r := newRig(t, Config{Limits: peer.Limits{Limits: hca.Limits{Memory: most}}, PrivilegedGroup: -1, Log: slog.New(slog.NewTextHandler(&said, nil))})
	stillWell := neighbours(t, r)
	c := r.a.opened(t)
	pd, large, small := c.allocPD(), memoryFile(t, 3*most), memoryFile(t, pageSize)
	c.pass(large.fd)
	refusedFirst(c, "a large file", proto.RegFileMR, &proto.RegMRRequest{PD: pd, Length: pageSize}, verbs.ErrLimit, unix.ENOMEM)
	c.pass(small.fd)
	ask(c, proto.RegFileMR, &proto.RegMRRequest{PD: pd, Length: pageSize})
	check(t, unix.Fallocate(small.fd, 0, 0, 3*most))
	m, _, err := c.Receive()
	check(t, err)
	if cause, _ := proto.DecodeFailure(m.Body); m.Kind != proto.Ended || !errors.Is(cause, verbs.ErrDeviceFatal) || !strings.Contains(cause.Error(), "twice as many bytes") {
		t.Errorf("%+v: %v", m, cause)
	}
	stillWell()
}
