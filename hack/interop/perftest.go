// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// perftest is a case with roced perf at one end and an unmodified program of perftest at the other. perftest's TCP is
// IPv4 only. The GID selects the IP version of the packets.
type perftest struct {
	service string // RC or UC for connections (perftestconnections.go), or empty for datagrams
	op      string // operation of connections: send, write, read or atomic
	pairs   int    // number of queue pairs; 0 means one
	mtu     int    // path MTU of the connection; 0 means 1024
	latency bool
	client  bool // roced is the client
	ipv6    bool
	group   bool // multicast, -g
	trains  bool // roced sends at the maximum rate, in trains
	size    int
	count   int
}

func perftestCases() (cases []testCase) {
	for _, p := range []perftest{
		{client: true, size: 1024, count: 500},
		{client: false, size: 1024, count: 500},
		{client: true, size: 64, count: 500, ipv6: true},
		{client: true, size: 1024, count: 500, trains: true},
		{client: true, size: 64, count: 500, ipv6: true, trains: true},
		{client: false, size: 64, count: 500, ipv6: true},
		{latency: true, client: true, size: 64, count: 500},
		{latency: true, client: false, size: 64, count: 500},
		{latency: true, client: true, size: 64, count: 200, ipv6: true},
		{client: true, size: 256, count: 200, group: true},
		{client: false, size: 256, count: 200, group: true},
		{client: true, size: 256, count: 200, group: true, ipv6: true},
		{client: false, size: 256, count: 200, group: true, ipv6: true},
		{latency: true, client: true, size: 64, count: 100, group: true},
		{latency: true, client: false, size: 64, count: 100, group: true},
	} {
		cases = append(cases, testCase{name: p.name(), xdp: p.trains, run: p.run})
	}
	return cases
}

func (p perftest) program() string {
	kind := "bw"
	if p.latency {
		kind = "lat"
	}
	if p.op == "swap" {
		return fmt.Sprintf("ib_atomic_%s -A CMP_AND_SWAP", kind)
	}
	return fmt.Sprintf("ib_%s_%s", cmp.Or(p.op, "send"), kind)
}

func (p perftest) name() string {
	role := "the client"
	if p.client {
		role = "the server"
	}
	program := p.program()
	if p.service != "" {
		program += " -c " + p.service
	}
	words := []string{"perf", program + " " + role, family(p.ipv6)}
	if p.pairs > 1 {
		words = append(words, fmt.Sprintf("%d queue pairs", p.pairs))
	}
	if p.group {
		words = append(words, "multicast")
	}
	if p.trains {
		words = append(words, "trains")
	}
	return strings.Join(words, ", ")
}

// groups returns the groups from which the two ends receive. They differ, since Soft-RoCE receives its own packets.
func (p perftest) groups() pair {
	if p.ipv6 {
		return pair{host: netip.MustParseAddr("ff0e::77:2"), peer: groupIPv6}
	}
	return pair{host: netip.MustParseAddr("239.77.0.2"), peer: groupIPv4}
}

// receives reports whether roced receives; the client of ib_send_bw only sends.
func (p perftest) receives() bool { return p.latency || !p.client }

// theirs returns the peer's command without the server's address.
func (p perftest) theirs(gid int) string {
	line := fmt.Sprintf("%s -F -x %d -n %d", p.program(), gid, p.count)
	if p.service != "" {
		return line + p.theirConnections()
	}
	line += fmt.Sprintf(" -c UD -s %d", p.size)
	if !p.latency {
		line += " -r 2048"
	}
	if p.group {
		line += " -g -M " + mgidBytes(p.groups().peer)
	}
	return line
}

// mgidBytes formats a group for perftest's -M.
func mgidBytes(group netip.Addr) string {
	bytes := group.As16()
	words := make([]string, len(bytes))
	for i, b := range bytes {
		words[i] = fmt.Sprint(b)
	}
	return strings.Join(words, ":")
}

func (p perftest) ours() []any {
	arguments := []any{"--sizes", p.size, "--count", p.count, "--bandwidth"}
	if p.latency {
		arguments[len(arguments)-1] = "--latency"
	}
	if p.service != "" {
		return append(arguments, p.ourConnections()...)
	}
	arguments = append(arguments, "--perftest")
	if p.trains {
		arguments = append(arguments, "--tx", "trains")
	} else if p.client && !p.latency {
		arguments = append(arguments, "--rate", 5000) // a rate that an emulated peer can receive
	}
	if p.group && p.receives() {
		arguments = append(arguments, "--group", p.groups().host)
	}
	return arguments
}

func (p perftest) run(ctx context.Context, l *testbed) (detail string, err error) {
	if !p.group || !p.client && !p.latency {
		return p.exchange(ctx, l)
	}
	// perftest attaches without joining, so Soft-RoCE requires a join, see attachedOnly.
	return l.withPeerJoined(ctx, p.groups().peer, func() (string, error) { return p.exchange(ctx, l) })
}

func (p perftest) exchange(ctx context.Context, l *testbed) (detail string, err error) {
	gid, err := l.peerGID(ctx, p.ipv6)
	if err != nil {
		return "", err
	}
	own, err := l.hostGID(ctx, p.ipv6)
	if err != nil {
		return "", err
	}
	arguments := append(p.ours(), "--gid-index", own, "--json")
	said, peerSaid, err := l.runBoth(ctx, p.client, "perf", arguments, p.theirs(gid))
	if err != nil {
		return "", err
	}
	if !p.isPassive(p.client) && !strings.Contains(peerSaid, "#bytes") {
		return "", fmt.Errorf("the peer reports no result:\n%s", tail(peerSaid))
	}
	return p.compare(said)
}

// compare checks roced's report. The peer's programs report by their exit status.
func (p perftest) compare(said string) (detail string, err error) {
	var report struct {
		Bandwidth []struct {
			Sent, Received int
			InTrains       int `json:"sent_in_trains"`
		}
		Latency []struct {
			RoundTrips int `json:"round_trips"`
		}
	}
	if p.isPassive(!p.client) {
		return fmt.Sprintf("%d of %d bytes, handled by roced's card alone", p.count, p.size), nil
	}
	// The report follows the server's status line.
	if err := json.Unmarshal([]byte(said[max(0, strings.Index(said, "\n{")):]), &report); err != nil {
		return "", fmt.Errorf("roced perf wrote %q: %w", tail(said), err)
	}
	switch {
	case p.latency && len(report.Latency) == 1 && report.Latency[0].RoundTrips >= p.count-1:
		return fmt.Sprintf("%d round trips of %d bytes", p.count, p.size), nil
	case p.latency || len(report.Bandwidth) != 1:
	case p.trains && report.Bandwidth[0].InTrains == 0:
	case p.service != "":
		return p.compareConnections(report.Bandwidth[0].Sent, report.Bandwidth[0].Received)
	case p.client && report.Bandwidth[0].Sent == p.count: // the server's exit status shows that they arrived
		return fmt.Sprintf("%d messages of %d bytes sent, and received by the peer", p.count, p.size), nil
	case !p.client && report.Bandwidth[0].Received == p.count:
		return fmt.Sprintf("%d of %d messages of %d bytes arrived", p.count, p.count, p.size), nil
	}
	return "", fmt.Errorf("roced perf reports %s", tail(said))
}
