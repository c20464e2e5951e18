// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/memory"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// refusedFirst checks that a command fails, and how: the kind, and the errno that comes first.
func refusedFirst[Q, G any](r *raw, name string, command proto.Command[Q, G], request *Q, kind error, errno unix.Errno) {
	r.Helper()
	err := refused(r, command, request)
	var first unix.Errno
	if !errors.Is(err, kind) || !errors.As(err, &first) || first != errno {
		r.Errorf("%s: %v, first %v", name, err, first)
	}
}

// TestEdgesOfAProcessFile: a region is in the file and has pages there, whatever a client requests; or nothing is left
// of it.
func TestEdgesOfAProcessFile(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	pd := c.allocPD()
	reg := func(offset uint64, length int) *proto.RegMRRequest {
		return &proto.RegMRRequest{PD: pd, Access: fullAccess, Length: length, Offset: offset}
	}
	refusedFirst(c, "before there is a file", proto.RegMR, reg(0, 1), verbs.ErrInvalid, unix.EINVAL)
	fd := c.shareMemory()
	before := r.a.Users()[0].Used
	const end = testSpace
	mapOwn(t, fd, end-int64(pageSize), pageSize)
	mapOwn(t, fd, 0, pageSize)
	for _, part := range []struct {
		offset uint64
		length int
	}{
		{end - 1, 2}, {end, 1}, {end + 1, 0}, {end - 1, math.MaxInt64}, {math.MaxUint64, 1}, {math.MaxUint64, 2}, {math.MaxUint64 - 4095, 4096},
		{0, -1}, {4096, -4096}, {0, math.MinInt64}, {1 << 63, math.MinInt64}, {0, 1<<38 + 1}, {end - 1<<38 + 1, 1 << 38}, {0, end}, {1, math.MaxInt64},
	} {
		refusedFirst(c, "a part that cannot be", proto.RegMR, reg(part.offset, part.length), verbs.ErrInvalid, unix.EINVAL)
	}
	for _, part := range []struct {
		offset uint64
		length int
	}{{uint64(pageSize), 1}, {0, pageSize + 1}, {end - uint64(pageSize) - 1, 2}, {1 << 40, 1 << 30}} {
		refusedFirst(c, "pages that are not there", proto.RegMR, reg(part.offset, part.length), verbs.ErrInvalid, unix.EFAULT)
	}
	bad := reg(0, 1)
	bad.PD = 77
	refusedFirst(c, "no PD", proto.RegMR, bad, verbs.ErrInvalid, unix.EINVAL)
	bad = reg(0, 1)
	bad.IOVA = math.MaxUint64 - 1
	ask(c, proto.RegMR, bad)
	bad.Length = 2
	refusedFirst(c, "an address that wraps", proto.RegMR, bad, verbs.ErrInvalid, unix.EINVAL)
	bad = reg(0, 1)
	bad.Access = verbs.AccessRemoteWrite
	refusedFirst(c, "rights that cannot be", proto.RegMR, bad, verbs.ErrInvalid, unix.EINVAL)
	mr, _ := ask(c, proto.RegMR, reg(end-1, 1))
	for name, rereg := range map[string]*proto.ReregMRMemoryRequest{
		"no flag":           {MR: mr.MR, Length: 1},
		"other flags":       {MR: mr.MR, Flags: verbs.ReregChangePD, PD: pd, Length: 1},
		"no memory":         {MR: mr.MR, Flags: verbs.ReregChangeTranslation},
		"beyond":            {MR: mr.MR, Flags: verbs.ReregChangeTranslation, Offset: end, Length: 1},
		"a negative length": {MR: mr.MR, Flags: verbs.ReregChangeTranslation, Length: -1},
		"another's region":  {MR: 99, Flags: verbs.ReregChangeTranslation, Length: 1},
	} {
		refusedFirst(c, name, proto.ReregMRMemory, rereg, verbs.ErrInvalid, unix.EINVAL)
	}
	refusedFirst(c, "pages that are not there", proto.ReregMRMemory, &proto.ReregMRMemoryRequest{MR: mr.MR, Flags: verbs.ReregChangeTranslation, Offset: 1 << 30, Length: 1}, verbs.ErrInvalid, unix.EFAULT)
	const pages = 2 + 2*2 // of each window two page tables count
	if used := r.a.Users()[0].Used; used.Memory != before.Memory+uint64(pages*pageSize) || used.MRs != 2 || processMappings(t) > 2 {
		t.Errorf("%+v are used, %+v were before; %d mappings", used, before, processMappings(t))
	}
}

// TestProcessFileIsSealed: a client can change neither the size of its file nor what can be done with it.
func TestProcessFileIsSealed(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	fd := c.shareMemory()
	for _, size := range []int64{0, 4096, testSpace - 1, testSpace + 4096} {
		if err := unix.Ftruncate(fd, size); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncated to %d: %v", size, err)
		}
	}
	for _, seal := range []int{unix.F_SEAL_WRITE, unix.F_SEAL_FUTURE_WRITE, unix.F_SEAL_EXEC} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seal); !errors.Is(err, unix.EPERM) {
			t.Errorf("sealed by %#x: %v", seal, err)
		}
	}
}

// TestPassedProcessFiles: only the file of a live session of the same user is taken.
func TestPassedProcessFiles(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	foreign, err := unix.MemfdCreate("foreign", unix.MFD_CLOEXEC)
	check(t, err)
	defer unix.Close(foreign)
	folder, err := os.Open(t.TempDir())
	check(t, err)
	defer folder.Close()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	defer proto.CloseAll(ends[:])
	gone := r.a.opened(t)
	ended := gone.shareMemory()
	check(t, gone.socket.Close())
	r.a.alone(t, 0)
	arena := r.a.opened(t)
	others := r.a.openedAs(t, 4711).shareMemory()
	bad := r.a.opened(t)
	for name, fd := range map[string]int{
		"a memfd of its own": foreign, "a directory": int(folder.Fd()), "a socket": ends[0], "of a session that has ended": ended,
		"another's": others, "queues of a session": arena.memory, "calls": arena.calls,
	} {
		check(t, unix.Sendmsg(bad.passing(), []byte{0}, unix.UnixRights(fd), nil, 0))
		refusedFirst(bad, name, proto.ShareMemory, &proto.ShareMemoryRequest{HasFile: true}, verbs.ErrInvalid, unix.EINVAL)
	}
	refusedFirst(bad, "none", proto.ShareMemory, &proto.ShareMemoryRequest{HasFile: true}, verbs.ErrInvalid, unix.EINVAL)
	bad.passing()
	refusedFirst(bad, "a socket without a file", proto.ShareMemory, &proto.ShareMemoryRequest{HasFile: true}, verbs.ErrInvalid, unix.EINVAL)
	bad.shareMemory()
}

// openedAs is a client of another user's, with a session.
func (d *daemon) openedAs(t *testing.T, uid int) *raw {
	t.Helper()
	r := d.connectAs(t, uid)
	r.greet()
	return r
}

// connectAs is a connection of another user's.
func (d *daemon) connectAs(t *testing.T, uid int) (r *raw) {
	t.Helper()
	asUser(t, uid, func() error {
		socket, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: d.path, Net: "unixpacket"})
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = socket.Close() })
		r = &raw{TB: t, Conn: proto.NewConn(socket, true), socket: socket, memory: -1, signal: -1, calls: -1}
		return nil
	})
	if r == nil {
		t.FailNow()
	}
	return r
}

// TestMappingsAreLimited: regions that lie far apart take mappings, of which a process has so many, and all users
// together; then they are refused, and others are not.
func TestMappingsAreLimited(t *testing.T) {
	limits := peer.Limits{All: quota.PoolLimits{Mappings: 2 * memory.MaxWindows}}
	r := newRig(t, Config{Limits: limits, PrivilegedGroup: -1})
	r.a.open(t)
	fill := func(c *raw, most int) (all []provider.Handle) {
		t.Helper()
		pd, fd := c.allocPD(), c.shareMemory()
		for i := range most + 1 {
			offset := int64(i) * memory.LeastWindow
			_, err := unix.Pwrite(fd, []byte{1}, offset)
			check(t, err)
			request := &proto.RegMRRequest{PD: pd, Access: fullAccess, Length: pageSize, Offset: uint64(offset)}
			if i == most {
				refusedFirst(c, "one more", proto.RegMR, request, verbs.ErrLimit, unix.ENOMEM)
				return all
			}
			grant, _ := ask(c, proto.RegMR, request)
			all = append(all, grant.MR)
		}
		return all
	}
	greedy := r.a.opened(t)
	all := fill(greedy, memory.MaxWindows)
	ask(greedy, proto.DeregMR, &provider.DeregMRRequest{MR: all[0]})
	pd := greedy.allocPD()
	ask(greedy, proto.RegMR, &proto.RegMRRequest{PD: pd, Length: pageSize, Offset: memory.LeastWindow * 9}) // where there is a mapping
	ask(greedy, proto.RegMR, &proto.RegMRRequest{PD: pd, Length: pageSize, Offset: 0})
	fill(r.a.opened(t), memory.MaxWindows*3/4) // the last eighth is for those that have little
	modest := r.a.openedAs(t, 4711)
	modestPD, fd := modest.allocPD(), modest.shareMemory()
	mapOwn(t, fd, 1<<40, pageSize)
	ask(modest, proto.RegMR, &proto.RegMRRequest{PD: modestPD, Length: pageSize, Offset: 1 << 40})
	for _, c := range []*raw{greedy, modest} {
		check(t, c.socket.Close())
	}
}

// TestRegisteredMemoryIsLimited: registered pages count, each region's, as other memory of the user does.
func TestRegisteredMemoryIsLimited(t *testing.T) {
	const most = 16 << 20
	r := newRig(t, Config{Limits: peer.Limits{Limits: hca.Limits{Memory: most}}, PrivilegedGroup: -1})
	c := r.a.opened(t)
	pd, fd := c.allocPD(), c.shareMemory()
	mapOwn(t, fd, 0, most)
	request := &proto.RegMRRequest{PD: pd, Length: most / 2}
	half, _ := ask(c, proto.RegMR, request)
	refusedFirst(c, "more than the user may have", proto.RegMR, request, verbs.ErrLimit, unix.ENOMEM)
	refusedFirst(c, "the same by a change", proto.ReregMRMemory,
		&proto.ReregMRMemoryRequest{MR: half.MR, Flags: verbs.ReregChangeTranslation, Length: most / 2}, verbs.ErrLimit, unix.ENOMEM)
	ask(c, proto.DeregMR, &provider.DeregMRRequest{MR: half.MR})
	ask(c, proto.RegMR, request)
}

// TestProcessFileThatGrows: a session ends whose user's files have far more pages than the user may register, also if
// they are not registered. Without a region the card cannot touch them, and they may be there.
func TestProcessFileThatGrows(t *testing.T) {
	const most = 8 << 20
	var said locked
	r := newRig(t, Config{Limits: peer.Limits{Limits: hca.Limits{Memory: most}}, PrivilegedGroup: -1, Log: slog.New(slog.NewTextHandler(&said, nil))})
	stillWell := neighbours(t, r)
	idle, c := r.a.opened(t), r.a.opened(t)
	idle.shareMemory()
	pd, fd := c.allocPD(), c.shareMemory()
	mapOwn(t, fd, 1<<40, 3*most)
	time.Sleep(300 * time.Millisecond) // files are checked ten times a second
	refusedFirst(c, "more than the user may have", proto.RegMR, &proto.RegMRRequest{PD: pd, Length: 3 * most, Offset: 1 << 40}, verbs.ErrLimit, unix.ENOMEM)
	packet, err := proto.RegMR.EncodeRequest(1, &proto.RegMRRequest{PD: pd, Length: pageSize, Offset: 1 << 40})
	check(t, err)
	check(t, c.Send(packet))
	m, _, err := c.Receive()
	for check(t, err); m.Kind != proto.Ended; check(t, err) { // the answer, if that was quicker
		m, _, err = c.Receive()
	}
	if cause, _ := proto.DecodeFailure(m.Body); !errors.Is(cause, verbs.ErrDeviceFatal) || !strings.Contains(cause.Error(), "twice as many bytes") {
		t.Errorf("%+v: %v", m, cause)
	}
	if text := said.String(); !strings.Contains(text, "a program's session has ended") || !strings.Contains(text, "twice as many bytes") {
		t.Errorf("the log has %q", text)
	}
	idle.allocPD()
	refusedFirst(r.a.opened(t), "after that", proto.ShareMemory, &proto.ShareMemoryRequest{}, verbs.ErrPermission, unix.EPERM)
	stillWell()
}

// TestHolesUnderTraffic: programs take pages out of their registered memory, while the card uses it. Each loses its
// session, the service makes no page for it, and the user shares no memory for a while. The neighbours notice nothing.
func TestHolesUnderTraffic(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	stillWell := neighbours(t, r)
	const programs, size = 150, 64 // more than faults in a row that end the engine
	for i := range programs {
		p := newProgram(t, r.a.dial(t))
		own, key := p.ownRegion(r.a, 1<<40, provider.AllocMRRequest{Length: size * pageSize, Access: fullAccess})
		if i%2 == 0 {
			own.punch()
		} else {
			check(t, unix.Madvise(own.bytes, unix.MADV_REMOVE))
		}
		p.fallsInto(uint64(i%size)*uint64(pageSize), key)
		if _, err := p.ctx.AllocPD(); !errors.Is(err, verbs.ErrDeviceFatal) || !strings.Contains(err.Error(), "unmapped pages") {
			t.Fatal(err)
		}
		var s unix.Stat_t
		check(t, unix.Fstat(own.fd, &s))
		if s.Blocks != 0 {
			t.Fatalf("the service has made %d blocks; can it use userfaultfd?", s.Blocks)
		}
		check(t, p.ctx.Close())
		r.a.alone(t, 1)
	}
	stillWell()
	statistics, err := r.cards[0].Statistics()
	check(t, err)
	if statistics.Faults != 0 {
		t.Errorf("got %d faults", statistics.Faults)
	}
	barred := r.a.opened(t)
	refusedFirst(barred, "after that", proto.ShareMemory, &proto.ShareMemoryRequest{}, verbs.ErrPermission, unix.EPERM)
	r.a.openedAs(t, 4711).shareMemory()
}

// TestHolesOfSeveral: the first session that meets a hole ends alone. When a second one of the user's does, all end that
// share memory, and no others.
func TestHolesOfSeveral(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	sharing := r.a.opened(t)
	sharing.shareMemory()
	plain, other := r.a.opened(t), r.a.openedAs(t, 4711)
	other.shareMemory()
	for range 2 {
		sharing.allocPD()
		p := newProgram(t, r.a.dial(t))
		own, key := p.ownRegion(r.a, 1<<40, provider.AllocMRRequest{Length: pageSize})
		own.punch()
		check(t, p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{{Length: 64, LKey: key}}, AH: p.ah(addressesA[0]), RemoteQPN: p.qp.Number(), RemoteQKey: testQKey}}))
		if event, err := p.ctx.GetAsyncEvent(guard(t)); err != nil || event.Type != verbs.EventDeviceFatal {
			t.Fatal(event.Type, err)
		}
		check(t, p.ctx.Close())
		r.a.alone(t, 3)
	}
	m, _, err := sharing.Receive()
	check(t, err)
	if cause, _ := proto.DecodeFailure(m.Body); m.Kind != proto.Ended || !strings.Contains(cause.Error(), "within a minute") {
		t.Errorf("%+v: %v", m, cause)
	}
	plain.allocPD()
	other.allocPD()
}

// TestPagesComeAndGo: a program that punches holes and fills them again on and on, and remaps pages, harms only
// itself, also while regions come and go.
func TestPagesComeAndGo(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	for range 5 {
		p := newProgram(t, r.a.dial(t))
		own, key := p.ownRegion(r.a, 1<<40, provider.AllocMRRequest{Length: 256 * pageSize, Access: fullAccess})
		var stop atomic.Bool
		over := make(chan struct{})
		go func() {
			defer close(over)
			for !stop.Load() {
				own.punch()
				own.touch()
			}
		}()
		ah := p.ah(addressesA[0])
		var wcs [16]verbs.WC
		for end := time.Now().Add(time.Second); time.Now().Before(end); {
			err := p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{{Addr: 77 * 4096, Length: 1000, LKey: key}}, AH: ah, RemoteQPN: p.qp.Number(), RemoteQKey: testQKey}})
			if errors.Is(err, verbs.ErrDeviceFatal) {
				break
			}
			if _, err = p.cq.Poll(wcs[:]); err != nil {
				break
			}
		}
		stop.Store(true)
		<-over
		stillWell()
		_ = p.ctx.Close()
	}
	r.a.alone(t, 1)
}
