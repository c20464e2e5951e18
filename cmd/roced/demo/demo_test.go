// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// running is printed when the lab is up and messages are about to be sent.
const running = "in flight"

// endless is more messages than are sent before the test ends the demo.
const endless = "1000000000"

func TestDemo(t *testing.T) {
	needs.Root(t)
	code, stdout, stderr := cmdtest.Run(t, "demo", "--count", "101")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s\n%s", code, stderr, stdout)
	}
	for _, want := range []string{"10.77.0.1, fd77::1", "XDP native, AF_XDP copy", "RDMA MTU 1024", "2,424 messages", "none lost", "Everything is removed"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("output lacks %q", want)
		}
	}
	if rows := strings.Count(stdout, " ok\n"); rows != 24+4+2 {
		t.Errorf("%d rows, want 24 of datagrams, 4 of a connection and 2 of the service", rows)
	}
	for _, want := range []string{"A reliable connection", "fetch and add", " with a delay of 10.24ms", "share its device shared", "10 round trips"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("output lacks %q", want)
		}
	}
	checkRow(t, stdout, "drop_qkey", "engine", "drop_qkey", "0", "1")
	checkRow(t, stdout, "drop_unknown_qp", "XDP", "drop_unknown_qp", "0", "1")
	checkRow(t, stdout, "delivered", "engine", "delivered", "1,212", "1,212")
	checkGroups(t, stdout, "101")
	checkNothingLeft(t)
	if strings.Contains(stdout, "As root") || strings.Contains(stdout, "Without root") {
		t.Error("the advantages of root are printed for root")
	}
	if t.Failed() {
		t.Log(stdout)
	}
}

// checkRow compares the first words of the line that has the name.
func checkRow(t *testing.T, text, name string, want ...string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.Contains(line, name) {
			continue
		}
		got := strings.Fields(line)
		if strings.Join(got[:min(len(want), len(got))], " ") != strings.Join(want, " ") {
			t.Errorf("%q, want %q", got, want)
		}
		return
	}
	t.Errorf("no row %s", name)
}

func TestDemoIsInterrupted(t *testing.T) {
	needs.Root(t)
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		c := cmdtest.Command(t, "demo", "--count", endless)
		c.Start(t)
		c.Await(t, running)
		if left := leftBy(t, c.Process.Pid); len(left) != 2 {
			t.Errorf("%d namespaces while the demo runs, want 2", len(left))
		}
		c.Process.Signal(signal)
		c.Process.Signal(signal) // as timeout(1) does
		code, rest := c.End(t)
		if code != cli.ExitSignal+int(signal) || strings.Contains(rest, "removed") {
			t.Errorf("%v: exit code %d, then %q", signal, code, rest)
		}
		if stderr := c.Said(); !strings.Contains(stderr, "stopped by "+unix.SignalName(signal)) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %q", signal, stderr)
		}
		if left := leftBy(t, c.Process.Pid); len(left) > 0 {
			t.Errorf("%v: left behind: %q", signal, left)
		}
	}
}

func TestDemoIsKilled(t *testing.T) {
	needs.Root(t)
	c := cmdtest.Command(t, "demo", "--count", endless)
	c.Start(t)
	c.Await(t, running)
	c.Process.Kill()
	c.End(t)
	if left := leftBy(t, c.Process.Pid); len(left) != 2 {
		t.Fatalf("a killed demo left %q, want two namespaces", left)
	}
	if code, _, stderr := cmdtest.Run(t, "demo", "--count", "1"); code != 0 {
		t.Errorf("the next demo: exit code %d: %s", code, stderr)
	}
	if left := leftBy(t, c.Process.Pid); len(left) > 0 {
		t.Errorf("the next demo did not remove %q", left)
	}
}

func TestDemoOutputIsClosed(t *testing.T) {
	needs.Root(t)
	c := cmdtest.Command(t, "demo", "--count", "1")
	c.Start(t)
	c.CloseOutput()
	code, _ := c.End(t)
	if code != cli.ExitSignal+int(unix.SIGPIPE) || c.Said() != "" {
		t.Errorf("exit code %d: %s", code, c.Said())
	}
	if left := leftBy(t, c.Process.Pid); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestDemoPanics(t *testing.T) {
	needs.Root(t)
	d := &demo{out: io.Discard, log: slog.New(slog.DiscardHandler), messages: 1}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		d.inLab(t.Context(), func(context.Context) error { panic("in the demo") })
	}()
	checkNothingLeft(t)
}

func TestDemoIsStoppedWhileBuilding(t *testing.T) {
	needs.Root(t)
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := newPairLab(ctx, slog.New(slog.DiscardHandler)); !errors.Is(err, cause) {
		t.Errorf("newLab: %v, want the cause", err)
	}
	checkNothingLeft(t)
}

// TestDemoOverXDPWithoutPrivileges: --network xdp reports the missing capabilities.
func TestDemoOverXDPWithoutPrivileges(t *testing.T) {
	needs.Root(t)
	c := cmdtest.Command(t, "demo", "--network", "xdp")
	c.StartWithout(t, unix.CAP_SYS_ADMIN, unix.CAP_NET_RAW)
	code, _ := c.End(t)
	stderr := c.Said()
	if code != cli.ExitFailed || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"CAP_SYS_ADMIN", "CAP_NET_RAW", "as root"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q does not contain %s", stderr, want)
		}
	}
	if strings.Contains(stderr, "CAP_NET_ADMIN") {
		t.Errorf("%q names a capability that is held", stderr)
	}
}

func checkNothingLeft(t *testing.T) {
	t.Helper()
	if left := leftBy(t, os.Getpid()); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// leftBy lists the namespaces that a demo process created.
func leftBy(t *testing.T, pid int) []string {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/run/netns/%s-%d-*", labPrefix, pid))
	if err != nil {
		t.Fatal(err)
	}
	return names
}
