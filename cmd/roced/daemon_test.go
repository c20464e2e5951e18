// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
)

// startDaemon starts the service with two hosts on an in-memory network, and returns the flag that selects it.
func startDaemon(t *testing.T) (flag string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "roced.sock")
	b := cmdtest.Command(t, "run", "--loopback", "--socket", socket, "--host", "a=10.1.0.1,fd01::1", "--host", "b=10.1.0.2,fd01::2")
	b.Start(t)
	for stdout := ""; !strings.Contains(stdout, "runs; devices: loop, a, b"); {
		_, stdout, _ = cmdtest.Run(t, "doctor", "--socket", socket)
	}
	return "--socket=" + socket
}

// TestCommandsOverTheService: ping, perf and mcast work over the service's devices.
func TestCommandsOverTheService(t *testing.T) {
	t.Parallel()
	daemon := startDaemon(t)
	server, port := cmdtest.StartWaiting(t, []string{"ping", "-d", "a", daemon})
	code, stdout, stderr := cmdtest.Run(t, "ping", "-d", "b", daemon, "-p", port, "-n", "10", "127.0.0.1")
	if code != 0 || !strings.Contains(stdout, "10.1.0.1") {
		t.Errorf("ping: exit code %d: %s%s", code, stdout, stderr)
	}
	server.Wait()

	server, port = cmdtest.StartWaiting(t, []string{"perf", "-d", "a", daemon, "--once"})
	code, stdout, stderr = cmdtest.Run(t, "perf", "-d", "b", daemon, "-p", port, "--sizes", "64", "--count", "1000", "127.0.0.1")
	if code != 0 || !strings.Contains(stdout, "64") {
		t.Errorf("perf: exit code %d: %s%s", code, stdout, stderr)
	}
	server.Wait()

	member := cmdtest.Start(t, "mcast", "-d", "a", daemon, "239.1.2.3", "--count", "3")
	member.Await(t, memberIsReady)
	code, _, stderr = cmdtest.Run(t, "mcast", "-d", "b", daemon, "239.1.2.3", "--send", "--count", "3")
	if code != 0 {
		t.Errorf("mcast: exit code %d: %s", code, stderr)
	}
	if code, rest := member.Wait(); code != 0 || !strings.Contains(rest, "3 messages") {
		t.Errorf("mcast: exit code %d: %s%s", code, rest, member.Stderr())
	}
}

func TestDaemonFlag(t *testing.T) {
	cmdtest.CheckFailure(t, []string{"ping", "-d", "a", "--socket=/nonexistent"}, cli.ExitFailed, "check that it is running")
	cmdtest.CheckFailure(t, []string{"ping", "-d", "a", "--socket=/nonexistent", "--xdp", "native"}, cli.ExitUsage, "--xdp cannot be combined with --socket")
	cmdtest.CheckFailure(t, []string{"mcast", "-d", "a", "--socket=/nonexistent", "239.1.2.3", "--membership", "socket"}, cli.ExitUsage, "--membership cannot be combined with --socket")
}
