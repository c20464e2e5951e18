// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// TestFileSizeLimit makes the largest file under limits of file sizes, in a process of its own. A soft limit is raised, and
// is the same afterwards; a hard one is named in the error, except to root.
func TestFileSizeLimit(t *testing.T) {
	const inChild = "ROCED_FSIZE"
	switch os.Getenv(inChild) {
	case "soft":
		makeUnder(t, unix.Rlimit{Cur: 1 << 30, Max: unix.RLIM_INFINITY}, "")
		return
	case "hard":
		makeUnder(t, unix.Rlimit{Cur: 1 << 30, Max: 1 << 32}, "the limit of file sizes is 4294967296 bytes")
		return
	}
	for _, kind := range []string{"soft", "hard"} {
		child := exec.Command("/proc/self/exe", "-test.run=^TestFileSizeLimit$", "-test.v")
		child.Env = append(os.Environ(), inChild+"="+kind)
		if os.Getuid() == 0 {
			child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%s limit: %v\n%s", kind, err, out)
		}
	}
}

func makeUnder(t *testing.T, limit unix.Rlimit, refusal string) {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	fd, err := sealedMemfd(proto.MaxProcessFile)
	if (err == nil) != (refusal == "") || err != nil && (!errors.Is(err, unix.EFBIG) || !strings.Contains(err.Error(), refusal)) {
		t.Errorf("under %+v: %v; want %q", limit, err, refusal)
	}
	if err == nil {
		_ = unix.Close(fd)
	}
	var after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &after); err != nil || after != limit {
		t.Errorf("the limit is %+v, %v; want %+v", after, err, limit)
	}
}

// TestAddressSpace compares the size with what maps(5) has: it is the smallest power of two above all mappings of programs.
func TestAddressSpace(t *testing.T) {
	size := uint64(addressSpace())
	maps, err := os.ReadFile("/proc/self/maps")
	check(t, err)
	last := uint64(0)
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && from < 1<<63 { // not [vsyscall]
			last = max(last, to)
		}
	}
	if size < last || size/2 >= last {
		t.Errorf("%#x bytes, and the last mapping ends at %#x", size, last)
	}
}
