// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// userDemo prepares a demo that runs as user nobody.
func userDemo(t *testing.T, args ...string) *cmdtest.Child {
	t.Helper()
	c := cmdtest.Command(t, append([]string{"demo"}, args...)...)
	c.AsNobody(t)
	return c
}

// needsUserNamespace skips a test if the kernel does not allow unprivileged user namespaces.
func needsUserNamespace(t *testing.T, stdout string) {
	t.Helper()
	for _, reason := range []string{"allows no further user namespace", "are not permitted here", "cannot create network namespaces"} {
		if strings.Contains(stdout, reason) {
			needs.Skip(t, "user namespaces: %s", stdout[:strings.IndexByte(stdout, '\n')])
		}
	}
}

// checkAll checks the output that every demo has.
func checkAll(t *testing.T, stdout string) {
	t.Helper()
	for _, want := range []string{
		"2,424 messages", "none lost", "A reliable connection", "RDMA WRITE", "RDMA READ", "fetch and add", " with a delay of 10.24ms",
		"239.77.0.7", "ff05::77:7", "share its device shared", "10 round trips", "Everything is removed", "\nAs root the ",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("output lacks %q", want)
		}
	}
	if rows := strings.Count(stdout, " ok\n"); rows != 24+4+2 {
		t.Errorf("%d rows, want 24 of datagrams, 4 of a connection and 2 of the service", rows)
	}
	checkRow(t, stdout, "drop_unknown_qp", "engine", "drop_unknown_qp", "0", "1")
	if t.Failed() {
		t.Log(stdout)
	}
}

// whole returns the output of a demo that succeeds without messages on stderr.
func whole(t *testing.T, c *cmdtest.Child) (stdout string) {
	t.Helper()
	code, stdout := c.End(t)
	if code != 0 || c.Said() != "" {
		t.Fatalf("exit code %d: %s\n%s", code, c.Said(), stdout)
	}
	return stdout
}

// TestDemoAsUser: the whole demo runs without root, over UDP sockets.
func TestDemoAsUser(t *testing.T) {
	t.Parallel()
	c := userDemo(t, "--count", "101")
	c.Start(t)
	stdout := whole(t, c)
	needsUserNamespace(t, stdout)
	checkAll(t, stdout)
	checkGroups(t, stdout, "101")
	if !strings.HasPrefix(stdout, "Without root, its hosts are in a user namespace") || strings.Count(stdout, "UDP sockets\n") != 2 {
		t.Errorf("the demo does not print its kind of network:\n%s", stdout)
	}
	if left := leftBy(t, c.Process.Pid); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestDemoInMemory: without a user namespace the demo runs in memory and prints the reason.
func TestDemoInMemory(t *testing.T) {
	t.Parallel()
	c := userDemo(t, "--count", "101")
	c.StartConfined(t)
	stdout := whole(t, c)
	checkAll(t, stdout)
	for _, want := range []string{"Without root, its hosts are on an in-memory network (user namespaces are not permitted here", "Three hosts on an in-memory network", "Queue pairs outside the group\nreceived none"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("output lacks %q:\n%s", want, stdout)
		}
	}
}

// TestDemoWithoutSomeCapabilities: root without capabilities is treated as an unprivileged user.
func TestDemoWithoutSomeCapabilities(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	c := cmdtest.Command(t, "demo", "--count", "1")
	c.StartWithout(t, unix.CAP_SYS_ADMIN, unix.CAP_NET_RAW)
	code, stdout := c.End(t)
	if code != 0 || !strings.HasPrefix(stdout, "Without root") || !strings.Contains(stdout, "Everything is removed") {
		t.Errorf("exit code %d: %s\n%s", code, c.Said(), stdout)
	}
}

// TestDemoOfRootOfAUserNamespace: root of a user namespace is treated as an unprivileged user,
// whatever its capabilities.
func TestDemoOfRootOfAUserNamespace(t *testing.T) {
	t.Parallel()
	needs.UserNamespace(t)
	c := userDemo(t, "--count", "1")
	c.AsRootOfUserNamespace()
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	code, stdout := c.End(t)
	if code != 0 || c.Said() != "" || !strings.HasPrefix(stdout, "Without root") || !strings.Contains(stdout, "Everything is removed") {
		t.Errorf("exit code %d: %s\n%s", code, c.Said(), stdout)
	}
}

// TestUserDemoIsStopped: a signal ends both processes with one message; a kill leaves nothing
// behind.
func TestUserDemoIsStopped(t *testing.T) {
	t.Parallel()
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGKILL} {
		c := userDemo(t, "--count", endless)
		c.Start(t)
		first := c.Await(t, "Without root")
		needsUserNamespace(t, first)
		c.Await(t, running)
		inside := childOf(t, c.Process.Pid)
		c.Process.Signal(signal)
		code, _ := c.End(t)
		stderr := c.Said()
		if signal != unix.SIGKILL && (code != cli.ExitSignal+int(signal) || !strings.Contains(stderr, "stopped by "+unix.SignalName(signal)) || strings.Count(stderr, "\n") != 1) {
			t.Errorf("%v: exit code %d: %q", signal, code, stderr)
		}
		for deadline := time.Now().Add(waittest.Limit); unix.Kill(inside, 0) == nil && !isZombie(inside); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%v: the process in the user namespace is still running", signal)
			}
		}
	}
}

// childOf returns the only child of a process.
func childOf(t *testing.T, pid int) (child int) {
	t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := fmt.Sscan(string(text), &child); n == 1 {
			return child
		}
	}
	t.Fatalf("process %d has no child", pid)
	return 0
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
