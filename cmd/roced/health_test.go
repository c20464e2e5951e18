// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab/labtest"
)

// memberIsReady occurs in the last line that mcast prints before messages.
const memberIsReady = "RDMA MTU"

// TestInterfaceRemoved: when the interface is removed, running commands end with the cause and without false reports.
// This includes commands that wait for TCP.
func TestInterfaceRemoved(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, args, until string }{
		{"mcast receives", "mcast 239.1.2.3", memberIsReady},
		{"mcast receives a number", "mcast 239.1.2.3 --count 10", memberIsReady},
		{"mcast sends", "mcast 239.1.2.3 --send --count 0 --rate 100", memberIsReady},
		{"mcast sends only", "mcast 239.1.2.3 --send --send-only --count 0", memberIsReady},
		{"perf server", "perf -p 0", "waiting for clients"},
		{"perftest server", "perf -p 0 --perftest --bandwidth", "waiting for"},
		{"ping server", "ping -p 0", "waiting for a client"},
	} {
		t.Run(row.name, func(t *testing.T) {
			hosts := labtest.Pair(t)
			args := append(strings.Fields(row.args), "-d", "eth0", "--netns", hosts.A.Path())
			b := cmdtest.Start(t, args...)
			b.Await(t, row.until)
			if err := hosts.A.Netlink().LinkDel(cmdtest.Eth0(t, hosts.A)); err != nil {
				t.Fatal(err)
			}
			code, rest := b.Wait()
			if stderr := b.Stderr(); code != cli.ExitFailed || !strings.Contains(stderr, "roced: device has failed: eth0: the interface has gone") || strings.Count(stderr, "roced: ") != 1 {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			for _, line := range strings.Split(rest, "\n") {
				if strings.Contains(line, " bytes to ") && !strings.Contains(line, "10.77.0.1 QP") {
					t.Errorf("printed a message that was not received: %q", line)
				}
			}
			if strings.Contains(row.args, "--count 10") && !strings.Contains(rest, "received 0 messages") {
				t.Errorf("the summary: %s", rest)
			}
		})
	}
}
