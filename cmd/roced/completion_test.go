// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
)

// TestCompletion: the shell completes commands and the values of flags with a known set.
func TestCompletion(t *testing.T) {
	socket := cmdtest.ServeMemory(t)
	for _, row := range []struct{ args, want string }{
		{"ping --network", "auto xdp udp"},
		{"ping -d", "lo"},
		{"ping --xdp", "auto native generic"},
		{"perf --rc --op", "send write read atomic swap"},
		{"exec --network", "loopback udp xdp"},
		{"exec -d", "lo"},
		{"run -d", "lo"},
		{"run --network", "auto xdp udp"},
		{"doctor -d", "lo"},
		{"show gid -d", "lo"},
		{"show qp --socket " + socket + " -d", "left right"},
		{"monitor --socket " + socket + " -d", "left right"},
		{"dump --socket " + socket + " --device", "left right"},
		{"mcast --membership", "auto netlink socket"},
		{"--log-level", "debug info warn error"},
		{"help show", "dev gid qp"},
		{"man", "ping show"},
		{"completion", "bash fish zsh"},
	} {
		code, stdout, stderr := cmdtest.Run(t, append(append([]string{"__complete"}, strings.Fields(row.args)...), "")...)
		var offered []string
		for _, line := range strings.Split(stdout, "\n") {
			name, _, _ := strings.Cut(line, "\t")
			offered = append(offered, name)
		}
		for _, want := range strings.Fields(row.want) {
			if code != 0 || !strings.Contains("\n"+strings.Join(offered, "\n")+"\n", "\n"+want+"\n") {
				t.Errorf("%s: exit code %d, no %q in %q: %s", row.args, code, want, offered, stderr)
			}
		}
	}
}
