// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"golang.org/x/sys/unix"
)

// TestSignalWhileTheServiceIsStopped: a signal ends commands that wait for the service, with the exit code of roced(8).
// doctor prints its findings first.
func TestSignalWhileTheServiceIsStopped(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "silent.sock")
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(listener) })
	if err := unix.Bind(listener, &unix.SockaddrUnix{Name: socket}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 16); err != nil {
		t.Fatal(err)
	}
	for i, args := range []string{"show dev", "show gid", "show qp --watch", "monitor", "dump -w /dev/null", "ping -d a", "perf -d a", "mcast -d a 239.1.2.3", "doctor"} {
		s, code := unix.SIGINT, cli.ExitSignal+2
		if i%2 == 1 {
			s, code = unix.SIGTERM, cli.ExitSignal+15
		}
		c := cmdtest.Command(t, append(strings.Fields(args), "--socket", socket)...)
		c.Start(t)
		connection, _, err := unix.Accept(listener) // accept and never respond, like a service that hangs
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Read(connection, make([]byte, 1)); err != nil { // the command has sent its query and waits
			t.Fatal(err)
		}
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		got, printed := c.End(t)
		if got != code || !strings.Contains(c.Said(), "stopped by "+unix.SignalName(s)) {
			t.Errorf("%s: exit code %d, want %d: %s", args, got, code, c.Said())
		}
		if args == "doctor" && (!strings.Contains(printed, "kernel") || !strings.Contains(printed, "does not respond")) {
			t.Errorf("doctor printed %q", printed)
		}
		unix.Close(connection)
	}
}
