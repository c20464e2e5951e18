// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// TestStatusAfterASignal: a command that runs until SIGINT or SIGTERM exits with 0, every other one with 128 plus the
// signal number. Tests of netdev and demo, which need namespaces, are in their packages.
func TestStatusAfterASignal(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	const interrupted = cli.ExitSignal
	for _, row := range []struct {
		args, begun string // output that shows that the command has started; empty for run, which has started when it offers a device
		status      int    // 0, or interrupted, to which the signal number is added
	}{
		{"run --loopback --socket " + filepath.Join(t.TempDir(), "roced.sock"), "", 0},
		{"monitor", "right", 0},
		{"dump -d left", "\n", 0},
		{"show dev --watch", "NETDEV", 0},
		{"show qp --watch=1h --json", "[", 0},
		{"perf -d left -p 0", "waiting for clients", 0},
		{"perf -d left -p 0 --once", "waiting for clients", interrupted},
		{"perf -d left -p 0 --rc --bandwidth", "waiting for", interrupted},
		{"perf -d left -p 0 --perftest --latency", "waiting for", interrupted},
		{"ping -d left -p 0", "waiting for a client", interrupted},
		{"ping -d left -p 0 --cm", "waiting for a client", interrupted},
		{"ping -d left -p 0 --cm --rc", "waiting for a client", interrupted},
		{"mcast -d left 239.1.2.3", "listening", 0},
		{"mcast -d left 239.1.2.3 --count 1", "listening", interrupted},
		{"mcast -d left 239.1.2.3 --send --rate 1 --count 0", "sending", 0},
		{"mcast -d left 239.1.2.3 --send --rate 1 --count 1000", "sending", interrupted},
	} {
		for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
			args := strings.Fields(row.args)
			if args[0] != "run" {
				args = append(args, "--socket", socket)
			}
			c := cmdtest.Command(t, args...)
			c.Start(t)
			switch {
			case args[0] == "monitor":
				causeEvents(t, socket, func() { c.Await(t, row.begun) })
			case row.begun != "":
				c.Await(t, row.begun)
			default:
				waittest.Eventually(t, "the service runs", func() bool {
					code, _, _ := cmdtest.Run(t, "show", "dev", "--socket", args[len(args)-1])
					return code == 0
				})
			}
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			want := row.status
			if want == interrupted {
				want += int(signal)
			}
			if code, _ := c.End(t); code != want || want != 0 && !strings.Contains(c.Said(), "stopped by "+unix.SignalName(signal)) {
				t.Errorf("%s: exit code %d after %s, want %d: %s", row.args, code, unix.SignalName(signal), want, c.Said())
			}
		}
	}
}

// causeEvents causes events of programs repeatedly until a function returns, because monitor does not print events that
// precede its subscription.
func causeEvents(t *testing.T, socket string, until func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for more := true; more; {
			cmdtest.Run(t, strings.Fields("mcast -d right 239.1.2.3 --send --quiet --socket "+socket)...)
			select {
			case <-done:
				more = false
			default:
			}
		}
	}()
	defer func() {
		close(done)
		<-ended
	}()
	until()
}
