// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab/labtest"
)

func TestConfigErrors(t *testing.T) {
	for _, test := range []struct {
		config Config
		wrong  string
	}{
		{Config{}, "Interface 0"},
		{Config{Interface: math.MaxInt32 + 1}, "Interface 2147483648"},
		{Config{Interface: 1, Queue: -1}, "Queue -1"},
		{Config{Interface: 1, Mode: 3}, "Mode 3"},
		{Config{Interface: 1, RxSize: 100}, "RxSize 100"},
		{Config{Interface: 1, RxFrames: 100}, "RxFrames 100 is less than RxSize 2048"},
		{Config{Interface: 1, RxFrames: 1<<31 + 1}, "RxFrames 2147483649"},
		{Config{Interface: 1, TxFrames: 1<<31 + 1}, "TxFrames 2147483649"},
		{Config{Interface: 1, TxFrames: 1 << 31, MaxFrame: 2049, MultiBuffer: true}, "TxFrames 2147483648 of 2 chunks"},
		{Config{Interface: 1, ChunkSize: 1024}, "ChunkSize 1024"},
		{Config{Interface: 1, MaxFrame: 2049}, "MaxFrame 2049"},
		{Config{Interface: 1, MaxFrame: 17*2048 + 1, MultiBuffer: true}, "MaxFrame 34817 needs 18 chunks"},
		{Config{Interface: 1, MaxFrame: math.MaxUint32, MultiBuffer: true}, "MaxFrame 4294967295"},
		{Config{Interface: 1, BusyPoll: time.Nanosecond}, "BusyPoll 1ns"},
		{Config{Interface: 1, BusyPoll: -time.Second}, "BusyPoll -1s"},
		{Config{Interface: 1, BusyPollBudget: 64}, "BusyPollBudget 64 requires"},
		{Config{Interface: 1, BusyPoll: time.Second, BusyPollBudget: 65536}, "BusyPollBudget 65536"},
	} {
		s, err := Open(test.config)
		if s != nil || !errors.Is(err, unix.EINVAL) || !strings.Contains(fmt.Sprint(err), test.wrong) {
			t.Errorf("%+v: got error %v, want one with %q", test.config, err, test.wrong)
		}
	}
}

func TestLayout(t *testing.T) {
	l, err := Config{
		Interface: 1, RxSize: 64, RxFrames: 100, TxFrames: 10, ChunkSize: 2048, MaxFrame: 5000, MultiBuffer: true,
	}.layout()
	if err != nil {
		t.Fatal(err)
	}
	want := layout{
		chunkSize: 2048, chunkShift: 11, rxChunks: 100, txSlots: 10, chunksPerFrame: 3, maxFrame: 5000,
		rxEntries: 64, fillEntries: 128, txEntries: 32,
	}
	if l != want || l.size() != (100+30)*2048 {
		t.Errorf("%+v of %d bytes", l, l.size())
	}
}

// impatient makes Bind wait for a busy queue only briefly, until the returned function is called.
func impatient() (patient func()) {
	was := bindTimeout
	bindTimeout = 100 * time.Millisecond
	return func() { bindTimeout = was }
}

// TestOpenErrors expects the correct sentinel for each error, and no leaks.
func TestOpenErrors(t *testing.T) {
	hosts := labtest.Pair(t)
	mustOpen(t, hosts.B, Config{})
	for name, test := range map[string]struct {
		open func() (*Socket, error)
		want error
	}{
		"busy": {func() (*Socket, error) {
			defer impatient()()
			return openIn(t, hosts.B, Config{})
		}, ErrQueueBusy},
		"no queue":  {func() (*Socket, error) { return openIn(t, hosts.A, Config{Queue: 1}) }, ErrNoQueue},
		"zero-copy": {func() (*Socket, error) { return openIn(t, hosts.A, Config{Mode: ZeroCopy}) }, ErrZeroCopy},
		"no interface": {func() (*Socket, error) {
			return Open(Config{Interface: math.MaxInt32})
		}, ErrNoInterface},
		"CAP_NET_RAW": {func() (s *Socket, err error) {
			without(t, unix.CAP_NET_RAW, func() { s, err = openIn(t, hosts.A, Config{}) })
			return s, err
		}, ErrPermission},
		"CAP_NET_ADMIN": {func() (s *Socket, err error) {
			without(t, unix.CAP_NET_ADMIN, func() { s, err = openIn(t, hosts.A, Config{BusyPoll: time.Millisecond}) })
			return s, err
		}, ErrBusyPoll},
		"CAP_IPC_LOCK": {func() (s *Socket, err error) {
			limitLocked(t)
			without(t, unix.CAP_IPC_LOCK, func() { s, err = openIn(t, hosts.A, Config{}) })
			return s, err
		}, ErrLockedMemory},
	} {
		t.Run(name, func(t *testing.T) {
			descriptors, before := labtest.Descriptors(), mappedRings(t)
			s, err := test.open()
			if s != nil || !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			t.Log(err)
			if leaked := labtest.Leaked(descriptors, labtest.Descriptors()); len(leaked) > 0 {
				t.Errorf("descriptors left open: %q", leaked)
			}
			if left := mappedRings(t) - before; left > 0 {
				t.Errorf("%d rings are still mapped", left)
			}
		})
	}
}

// TestOpenErrorUnmaps calls Open, which fails, often enough to detect a UMEM that stays mapped.
func TestOpenErrorUnmaps(t *testing.T) {
	hosts := labtest.Pair(t)
	const rounds, frames = 20, 1 << 14 // 32 MiB each
	before := virtualMemory(t)
	for range rounds {
		if _, err := openIn(t, hosts.A, Config{Queue: 1, RxFrames: frames}); !errors.Is(err, ErrNoQueue) {
			t.Fatal(err)
		}
	}
	if grown := virtualMemory(t) - before; grown > rounds/2*frames*2048 {
		t.Errorf("%d MiB more mapped after %d failures", grown>>20, rounds)
	}
}

// TestMultiBufferSupported compares the probe and Open with the version of the kernel: before Linux 6.6 the error is
// expected.
func TestMultiBufferSupported(t *testing.T) {
	hosts := labtest.Pair(t)
	var uname unix.Utsname
	if err := unix.Uname(&uname); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(uname.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	want := major > 6 || major == 6 && minor >= 6
	if got, err := MultiBufferSupported(); err != nil || got != want {
		t.Errorf("%v, %v, want %v on %d.%d", got, err, want, major, minor)
	}
	s, err := openIn(t, hosts.A, Config{MultiBuffer: true})
	if err == nil {
		defer s.Close()
	}
	if want != (err == nil) || !want && !errors.Is(err, ErrMultiBuffer) {
		t.Errorf("Open on %d.%d: %v", major, minor, err)
	}
}

// without runs f on a thread without a capability, and restores it.
func without(t *testing.T, capability int, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had [2]unix.CapUserData
	if err := unix.Capget(&header, &had[0]); err != nil {
		t.Fatal(err)
	}
	less := had
	less[capability/32].Effective &^= 1 << (capability % 32)
	if err := unix.Capset(&header, &less[0]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Capset(&header, &had[0]); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// limitLocked limits locked memory to 1 MiB until the test ends.
func limitLocked(t *testing.T) {
	t.Helper()
	var had unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &had); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 1 << 20, Max: had.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_MEMLOCK, &had) })
}

// mappedRings counts the mapped rings.
func mappedRings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(maps, []byte("socket:["))
}

// virtualMemory returns the number of bytes that the process has mapped.
func virtualMemory(t *testing.T) int {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var pages int
	if _, err := fmt.Sscan(string(statm), &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestPrepare prepares a socket while another one is bound to its queue, and binds it after the other one is closed.
func TestPrepare(t *testing.T) {
	hosts := labtest.Pair(t)
	was := mustOpen(t, hosts.A, Config{})
	var next, other *Socket
	if err := hosts.A.Do(func() (err error) {
		if next, err = Prepare(Config{Interface: was.info.Interface, ChunkSize: 4096}); err == nil {
			other, err = Prepare(Config{Interface: was.info.Interface, Queue: 7})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	patient := impatient()
	if err := next.Bind(); !errors.Is(err, ErrQueueBusy) {
		t.Errorf("a busy queue: %v", err)
	}
	patient()
	if err := other.Bind(); !errors.Is(err, ErrNoQueue) {
		t.Errorf("a missing queue: %v", err)
	}
	if err := errors.Join(other.Close(), was.Close(), next.Bind()); err != nil {
		t.Fatal(err)
	}
	if info := next.Attached(); info.MaxUnsplit != 4096-256 {
		t.Errorf("%+v", info)
	}
	steer(t, hosts.A, next)
	peer := mustOpen(t, hosts.B, Config{})
	sendAll(t, peer, 0, 10, 100)
	collect(t, next, 10, inOrder(t, 0, 100))
}
