// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"github.com/roced/roced/hack/interop/job"
)

// pingpong is a case with roced ping at one end and an unmodified ibv_ud_pingpong, ibv_rc_pingpong, ibv_uc_pingpong or
// ibv_srq_pingpong at the other. They compare every byte. Their TCP is IPv4 only. The GID selects the IP version of the
// messages.
type pingpong struct {
	over   string // rc, uc or srq for a connection, or empty for datagrams
	mtu    int    // path MTU of the connection; 0 means 1024
	size   int
	count  int
	ipv6   bool
	client bool // roced is the client
}

func pingpongCases() (cases []testCase) {
	for _, ipv6 := range []bool{false, true} {
		for _, client := range []bool{true, false} {
			p := pingpong{size: 1024, count: 200, ipv6: ipv6, client: client}
			name := []string{"ping", "ibv_ud_pingpong the server", family(ipv6)}
			if !client {
				name[1] = "ibv_ud_pingpong the client"
			}
			cases = append(cases, testCase{name: strings.Join(name, ", "), run: p.run})
		}
	}
	for _, over := range []string{"rc", "uc", "srq"} {
		for _, ipv6 := range []bool{false, true} {
			for _, client := range []bool{true, false} {
				p := pingpong{over: over, size: 10_000, count: 200, ipv6: ipv6, client: client}
				cases = append(cases, testCase{name: p.name(), run: p.run})
			}
		}
	}
	for _, client := range []bool{true, false} {
		p := pingpong{over: "rc", size: 100_000, count: 50, client: client, mtu: 4096}
		cases = append(cases, testCase{name: p.name() + ", jumbo", mtu: jumboMTU, run: p.run})
	}
	return append(cases,
		testCase{name: "ping, 61 bytes", run: pingpong{size: 61, count: 50, client: true}.run},
		testCase{name: "ping, one message of 1 byte", run: pingpong{size: 1, count: 1}.run},
		testCase{name: "ping jumbo, 4096 bytes, the client", mtu: jumboMTU, run: pingpong{size: 4096, count: 50, client: true}.run},
		testCase{name: "ping jumbo, 4096 bytes, the server", mtu: jumboMTU, run: pingpong{size: 4096, count: 50}.run},
	)
}

// name returns the name of a case with a connection.
func (p pingpong) name() string {
	role := "the server"
	if !p.client {
		role = "the client"
	}
	return strings.Join([]string{"ping", p.program() + " " + role, family(p.ipv6)}, ", ")
}

// program returns the name of the peer's program.
func (p pingpong) program() string { return "ibv_" + cmp.Or(p.over, "ud") + "_pingpong" }

func (p pingpong) run(ctx context.Context, l *testbed) (detail string, err error) {
	gid, err := l.peerGID(ctx, p.ipv6)
	if err != nil {
		return "", err
	}
	own, err := l.hostGID(ctx, p.ipv6)
	if err != nil {
		return "", err
	}
	theirs := fmt.Sprintf("%s -g %d -s %d -n %d", p.program(), gid, p.size, p.count)
	ours := []any{"--size", p.size, "--count", p.count}
	if p.over != "srq" { // ibv_srq_pingpong compares nothing, and sends zeros
		theirs += " -c"
		ours = append(ours, "--check")
	}
	if p.over != "" {
		mtu := cmp.Or(p.mtu, 1024)
		theirs += fmt.Sprint(" -m ", mtu)
		ours = append(ours, "--mtu", mtu)
	}
	switch p.over {
	case "uc":
		ours = append(ours, "--uc")
	case "srq":
		theirs += " -q 1"
		ours = append(ours, "--srq")
	case "rc":
		ours = append(ours, "--rc")
	}
	if p.client {
		ours = append(ours, "--gid-index", own)
	}
	said, _, err := l.runBoth(ctx, p.client, "ping", ours, theirs)
	if err != nil {
		return "", err
	}
	if !strings.Contains(said, fmt.Sprintf("%d iters in ", p.count)) {
		return "", fmt.Errorf("unexpected output of roced ping:\n%s", tail(said))
	}
	return fmt.Sprintf("%d messages of %d bytes each way", p.count, p.size), nil
}

// tcpPort is the TCP port of ibv_ud_pingpong and perftest.
const tcpPort = 18515

// hostGID returns the GID index of the host's address.
func (l *testbed) hostGID(ctx context.Context, ipv6 bool) (index int, err error) {
	said, err := l.start(ctx, "show", "gid", "-d", "eth0", "--json").Wait()
	var table []struct {
		Index int
		GID   netip.Addr
	}
	if err == nil {
		err = json.Unmarshal([]byte(said), &table)
	}
	for _, entry := range table {
		if entry.GID.Unmap() == ends(ipv6).host {
			return entry.Index, nil
		}
	}
	return 0, fmt.Errorf("%v is not in roced's GID table (%v):\n%s", ends(ipv6).host, err, said)
}

// peerGID returns the GID index of the peer's address.
func (l *testbed) peerGID(ctx context.Context, ipv6 bool) (index int, err error) {
	said, err := l.peer.Run(ctx, "grep -H . /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null")
	for line := range strings.Lines(said) {
		file, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		if gid, parseErr := netip.ParseAddr(text); parseErr == nil && gid.Unmap() == ends(ipv6).peer {
			return strconv.Atoi(path.Base(file))
		}
	}
	return 0, fmt.Errorf("%v is not in the peer's GID table (%v):\n%s", ends(ipv6).peer, err, said)
}

// runBoth runs a roced command and a command of the peer, one of which is the server. It passes the server's IPv4
// address to the client.
func (l *testbed) runBoth(ctx context.Context, client bool, command string, ours []any, theirs string) (said, peerSaid string, err error) {
	if client {
		server := l.peer.Start(ctx, theirs)
		if err := l.awaitListening(ctx, server); err != nil {
			return "", "", err
		}
		return both(l.onHost(ctx, command, append(ours, peerIPv4)...), server)
	}
	server := l.onHost(ctx, command, ours...)
	if err := l.awaitHostListening(ctx, server); err != nil {
		return "", "", err
	}
	return both(server, l.peer.Start(ctx, fmt.Sprint(theirs, " ", hostIPv4)))
}

// awaitListening waits until a server on the peer listens.
func (l *testbed) awaitListening(ctx context.Context, server *job.Job) error {
	return l.await(ctx, server, "the peer does not listen", func() (bool, error) {
		said, err := l.peer.Run(ctx, fmt.Sprintf("ss -Hltn sport = %d", tcpPort))
		return said != "", err
	})
}

// awaitHostListening waits until roced listens.
func (l *testbed) awaitHostListening(ctx context.Context, server *job.Job) error {
	return l.await(ctx, server, "roced does not listen", func() (bool, error) { return l.hostListens(ctx, tcpPort) })
}
