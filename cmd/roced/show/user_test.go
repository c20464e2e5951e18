// SPDX-License-Identifier: Apache-2.0

package show

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// TestOthersAreHidden: a note tells unprivileged users that objects of others are hidden. The test's thread changes its
// uid.
func TestOthersAreHidden(t *testing.T) {
	needs.Root(t)
	socket := cmdtest.ServeMemory(t)
	for name := socket; strings.HasPrefix(name, os.TempDir()+"/"); name = filepath.Dir(name) {
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := cmdtest.Run(t, strings.Fields("show "+args+" --socket "+socket)...)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", args, code, stderr)
		}
		return stdout, stderr
	}
	if _, stderr := run("qp"); stderr != "" {
		t.Errorf("root: got note %q", stderr)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become := func(uid int) {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			t.Fatal(errno)
		}
	}
	become(65534)
	defer become(0)
	for args, want := range map[string]bool{"qp": true, "client": true, "cm": true, "dev": false, "stat": false, "qp -j": false} {
		if _, stderr := run(args); strings.Contains(stderr, "hidden") != want || !want && stderr != "" {
			t.Errorf("show %s: %q", args, stderr)
		}
	}
}
