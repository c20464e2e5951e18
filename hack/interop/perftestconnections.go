// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"
)

// connectionCases returns the cases with perftest's programs over connections.
func connectionCases() (cases []testCase) {
	add := func(p perftest) { cases = append(cases, testCase{name: p.name(), xdp: p.trains, run: p.run}) }
	for _, p := range []perftest{
		{service: "RC", op: "send", size: 10_000, count: 300},
		{service: "RC", op: "write", size: 10_000, count: 300},
		{service: "RC", op: "read", size: 10_000, count: 300},
		{service: "RC", op: "atomic", size: 8, count: 300},
		{service: "RC", op: "swap", size: 8, count: 300},
		{service: "UC", op: "send", size: 3000, count: 30},
		{service: "UC", op: "write", size: 3000, count: 100},
		{service: "RC", op: "send", size: 64, count: 200, latency: true},
		{service: "RC", op: "write", size: 3000, count: 200, latency: true},
		{service: "RC", op: "read", size: 3000, count: 200, latency: true},
		{service: "RC", op: "atomic", size: 8, count: 200, latency: true},
		{service: "RC", op: "swap", size: 8, count: 200, latency: true},
		{service: "UC", op: "send", size: 64, count: 100, latency: true},
		{service: "UC", op: "write", size: 64, count: 100, latency: true},
	} {
		for _, client := range []bool{true, false} {
			p.client = client
			add(p)
		}
	}
	for _, p := range []perftest{ // not 8 bytes, which tshark would decode as RPC over RDMA
		{service: "RC", op: "send", size: 64, count: 100, ipv6: true},
		{service: "RC", op: "write", size: 64, count: 100, ipv6: true},
		{service: "RC", op: "read", size: 64, count: 100, ipv6: true},
		{service: "RC", op: "atomic", size: 8, count: 100, ipv6: true},
	} {
		add(p)
		p.client, p.latency = true, true
		add(p)
	}
	for _, op := range []string{"send", "write", "read"} {
		p := perftest{service: "RC", op: op, size: 100, count: 100, pairs: 4}
		add(p)
		p.client = true
		add(p)
	}
	for _, client := range []bool{true, false} { // roced splits such a READ into several requests
		p := perftest{service: "RC", op: "read", size: 1 << 20, count: 5, client: client}
		cases = append(cases, testCase{name: p.name() + ", a mebibyte", run: p.run})
	}
	for _, op := range []string{"send", "write", "read"} {
		for _, client := range []bool{true, false} {
			p := perftest{service: "RC", op: op, size: 65536, count: 50, client: client, mtu: 4096}
			cases = append(cases, testCase{name: p.name() + ", jumbo", mtu: jumboMTU, run: p.run})
		}
	}
	return cases
}

func (p perftest) atomic() bool { return p.op == "atomic" || p.op == "swap" }

// theirConnections returns the flags of the peer's program. Those of atomics have no size.
func (p perftest) theirConnections() string {
	line := fmt.Sprintf(" -c %s -m %d", p.service, cmp.Or(p.mtu, 1024))
	if !p.atomic() {
		line += fmt.Sprint(" -s ", p.size)
	}
	if p.pairs > 1 {
		line += fmt.Sprint(" -q ", p.pairs)
	}
	return line
}

// ourConnections returns the flags of roced perf.
func (p perftest) ourConnections() []any {
	return []any{"--" + strings.ToLower(p.service), "--op", p.op, "--qps", max(1, p.pairs), "--mtu", cmp.Or(p.mtu, 1024)}
}

// isPassive reports whether a side's program measures nothing. This is the case for the server of READs and atomics,
// whose card executes them.
func (p perftest) isPassive(server bool) bool {
	return server && p.latency && (p.op == "read" || p.atomic())
}

// compareConnections checks roced's counts. The client of a connection counts sent messages, and the server received
// ones or those in the client's result.
func (p perftest) compareConnections(sent, received int) (detail string, err error) {
	all := p.count * max(1, p.pairs)
	switch {
	case p.client && sent == all:
		return fmt.Sprintf("%d of %d bytes, executed by the peer", all, p.size), nil
	case !p.client && p.op == "send" && received == all:
		return fmt.Sprintf("%d of %d bytes arrived", all, p.size), nil
	case !p.client && p.op != "send" && sent == all:
		return fmt.Sprintf("%d of %d bytes, as reported by the peer", all, p.size), nil
	}
	return "", fmt.Errorf("roced perf reports %d sent and %d received, want %d", sent, received, all)
}
