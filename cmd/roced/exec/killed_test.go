// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// kill is a command that the test kills. Its folder for temporary files is place.
type kill struct {
	*cmdtest.Child
	place string
}

// startToBeKilled starts a command whose program runs until the end of its input, which the test does not close.
func startToBeKilled(t *testing.T, ns *lab.Namespace, asNobody bool, args ...string) kill {
	t.Helper()
	child := cmdtest.Command(t, append(append([]string{"exec", "--libraries", newLibraries(t)}, args...), "sh", "-c", "echo up; read x; echo still here")...)
	if asNobody {
		child.AsNobody(t)
	}
	place := cmdtest.NobodysDir(t)
	child.Env = append(child.Env, "TMPDIR="+place, "ROCED_SOCKET=", "XDG_RUNTIME_DIR="+place)
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close() })
	if ns == nil {
		child.Start(t)
	} else if err := ns.Do(func() error { child.Start(t); return nil }); err != nil {
		t.Fatal(err)
	}
	return kill{child, place}
}

// leavesNothing kills the command, and waits until no process, file, socket or mount of it or its program
// exists. Except for mounts, their names contain that of its temporary directory.
func (k kill) leavesNothing(t *testing.T) {
	t.Helper()
	if err := k.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	k.Process.Wait()
	waittest.Eventually(t, "a killed command leaves nothing behind", func() bool {
		files, err := os.ReadDir(k.place)
		if err != nil {
			t.Fatal(err)
		}
		return len(files) == 0 && !k.namedIn("/proc/net/unix") && !isIn("/proc/self/mountinfo", " - tmpfs roced ") && !k.namedIn("/proc/[0-9]*/environ")
	})
}

// namedIn reports whether the folder's name occurs in one of the files.
func (k kill) namedIn(pattern string) bool { return isIn(pattern, k.place) }

func isIn(pattern, text string) bool {
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && bytes.Contains(content, []byte(text)) { // it fails if the process has ended
			return true
		}
	}
	return false
}

// TestKilledLeavesNothing: if a command is killed, its program ends, and its socket, folder, mounts and port are
// released.
func TestKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for name, row := range map[string]struct {
		ns       *lab.Namespace
		asNobody bool
		args     []string
	}{
		"in memory":         {nil, false, []string{"--network", "loopback"}},
		"nobody":            {nil, true, []string{"--network", "loopback"}},
		"--sysfs":           {nil, false, []string{"--network", "loopback", "--sysfs"}},
		"--sysfs of nobody": {nil, true, []string{"--network", "loopback", "--sysfs"}},
		"UDP sockets":       {hosts.A, true, []string{"--network", "udp"}},
		"XDP":               {hosts.B, false, []string{"--network", "xdp", "-d", "eth0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if row.asNobody && slices.Contains(row.args, "--sysfs") {
				needs.UserNamespace(t)
			}
			for range 2 { // the second one finds the port and the interface free
				k := startToBeKilled(t, row.ns, row.asNobody, row.args...)
				k.Await(t, "up")
				k.leavesNothing(t)
			}
		})
	}
}

// TestKilledAtAnyMoment: a command that is killed during its start leaves nothing behind.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 40 {
		args := []string{"--network", "loopback"}
		if i%2 == 1 {
			args = append(args, "--sysfs")
		}
		k := startToBeKilled(t, nil, i%4 > 1, args...)
		time.Sleep(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
		k.leavesNothing(t)
	}
}

// TestGroupKilled: the guard is in another process group than the command and its program.
func TestGroupKilled(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	script := os.Args[0] + " exec --network loopback --libraries " + newLibraries(t) + " -- sh -c 'kill -KILL 0'"
	got := runChild(func() *cmdtest.Child {
		child := cmdtest.Command(t)
		child.Path, child.Args = needs.Command(t, "setsid").Path, []string{"setsid", "--wait", "sh", "-c", script}
		return child
	}(), t.TempDir(), []string{"TMPDIR=" + place})
	k := kill{place: place}
	waittest.Eventually(t, "the folder is removed", func() bool {
		left, err := os.ReadDir(place)
		return err == nil && len(left) == 0 && !k.namedIn("/proc/[0-9]*/environ")
	})
	if got.code == 0 {
		t.Errorf("exit code 0: %q", got.out)
	}
}

// TestLeftFolders: the next command removes leftovers of a command that was killed together with its guard, but not the
// folder of a running command.
func TestLeftFolders(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	left, other := filepath.Join(place, folderPrefix+"left"), filepath.Join(place, folderPrefix+"other")
	for _, dir := range []string{left, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := lockFolder(other, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	got := run(t, []string{"TMPDIR=" + place}, "--network", "loopback", "--libraries", newLibraries(t), "true")
	files, err := os.ReadDir(place)
	if err != nil || got.code != 0 || len(files) != 1 || files[0].Name() != filepath.Base(other) {
		t.Errorf("exit code %d, %q; left: %v, %v", got.code, got.errOut, files, err)
	}
}

// TestGuardRemovesOnlyOwnFolders: the guard does not remove folders with other names, even if a user sets its flag.
func TestGuardRemovesOnlyOwnFolders(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "precious")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	child := cmdtest.Command(t, "exec", "--"+guarding, "--", dir)
	child.Stdin = strings.NewReader("")
	if got := runChild(child, t.TempDir(), nil); got.code != 0 {
		t.Errorf("exit code %d, %q", got.code, got.errOut)
	}
	if err := unix.Access(dir, unix.F_OK); err != nil {
		t.Error(err)
	}
}
