// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs/hca"
)

// asNobody starts a command line as an unprivileged user in a namespace.
func asNobody(t *testing.T, ns *lab.Namespace, args string) *cmdtest.Child {
	t.Helper()
	c := cmdtest.Command(t, strings.Fields(args)...)
	c.AsNobody(t)
	if err := ns.Do(func() error { c.Start(t); return nil }); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCommandsAsOrdinaryUsers: both ends use UDP sockets, without privileges. With --network auto, missing
// privileges are reported.
func TestCommandsAsOrdinaryUsers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ server, ready, client, says string }{
		{"ping -d eth0 --network udp -n 50", "UDP sockets", "ping -d eth0 --network udp -n 50 10.77.0.1", "50 iters in"},
		{"ping -d eth0 --network udp -n 50 --rc -s 10000", "UDP sockets", "ping -d eth0 --network udp -n 50 --rc -s 10000 fd77::1", "50 iters in"},
		{"ping -d eth0 --network udp -n 50 --cm", "UDP sockets", "ping -d eth0 --network udp -n 50 --cm fd77::1", "50 iters in"},
		{
			"perf -d eth0 --network udp --once", "UDP sockets",
			"perf -d eth0 --network udp --duration 50ms -n 50 --sizes 64 10.77.0.1", "server: eth0, 10.77.0.1, RDMA MTU 1024, UDP sockets",
		},
		{
			"perf -d eth0 --network udp --rc --bandwidth --op write -n 50", "UDP sockets",
			"perf -d eth0 --network udp --rc --bandwidth --op write -n 50 10.77.0.1", "write over RC",
		},
		{
			"mcast -d eth0 --network udp 239.1.2.3 --count 3", "UDP sockets",
			"mcast -d eth0 --network udp 239.1.2.3 --send --send-only --count 3", "sent 3 messages",
		},
		{"mcast -d eth0 --network udp ff0e::7 --cm --count 3", "UDP sockets", "mcast -d eth0 --network udp ff0e::7 --send --count 3", "received 3 messages"},
	} {
		t.Run(row.server, func(t *testing.T) {
			t.Parallel()
			hosts := labtest.Pair(t)
			server := asNobody(t, hosts.A, row.server)
			server.Await(t, row.ready)
			client := asNobody(t, hosts.B, row.client)
			if code, stdout := client.End(t); code != 0 || !strings.Contains(stdout, row.says) || complaints(client) != "" {
				t.Errorf("client: exit code %d: %s\n%s", code, client.Said(), stdout)
			}
			if code, stdout := server.End(t); code != 0 || complaints(server) != "" {
				t.Errorf("server: exit code %d: %s\n%s", code, server.Said(), stdout)
			}
		})
	}
	hosts := labtest.Pair(t)
	c := asNobody(t, hosts.A, "mcast -d eth0 --send --send-only --count 1 239.1.2.3")
	code, stdout := c.End(t)
	said := c.Said()
	if code != 0 || !strings.Contains(stdout, "UDP sockets") || strings.Count(said, "\n") != 1 || !strings.Contains(said, "missing CAP_NET_RAW") || !strings.Contains(said, "single messages take longer") {
		t.Errorf("exit code %d: %s\n%s", code, said, stdout)
	}
}

// progress matches a line that a long test writes every 10 s, on a slow machine.
var progress = regexp.MustCompile(`(?m)^.*: [0-9.hms]+, [0-9,]+ messages, [0-9,]+/s\n`)

// complaints returns a command's standard error output without progress lines.
func complaints(c *cmdtest.Child) string { return progress.ReplaceAllString(c.Said(), "") }

// TestOrdinaryUserBesideXDP: UDP sockets are not used by default on an interface with an XDP program, since they would
// receive no packets if that belongs to roced.
func TestOrdinaryUserBesideXDP(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	card, err := hca.Open("eth0", hca.InNamespace(hosts.A.Path()), hca.WithNetwork(hca.NetworkXDP))
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	c := asNobody(t, hosts.A, "mcast -d eth0 --count 1 239.1.2.3")
	code, _ := c.End(t)
	for _, want := range []string{"missing CAP_NET_RAW", "there is an XDP program", "on eth0", "--network udp"} {
		if said := c.Said(); code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, want) {
			t.Errorf("exit code %d: %q lacks %q", code, said, want)
		}
	}
}
