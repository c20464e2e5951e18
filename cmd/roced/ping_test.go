package main

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// pingArgs is a command line of ping in a namespace.
func pingArgs(ns *lab.Namespace, args string) []string {
	return append([]string{"ping", "-d", "eth0", "--netns", ns.Path()}, strings.Fields(args)...)
}

// startWaiting starts a server for one client, and gives its TCP port when it listens.
func startWaiting(t *testing.T, args []string) (b *background, port string) {
	t.Helper()
	b = start(t, append(args, "-p", "0")...)
	_, address, _ := strings.Cut(b.await(t, "waiting for "), " on ")
	address, _, _ = strings.Cut(address, ": ")
	return b, strconv.Itoa(int(netip.MustParseAddrPort(address).Port()))
}

func TestPing(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct{ name, both, host, client, gid string }{
		{"IPv4", "-n 50", "10.77.0.1", "", "GID ::ffff:10.77.0.1"},
		{"IPv6", "-n 50 -c", "fd77::1", "", "GID fd77::1"},
		{"IPv6, met over IPv4", "-n 50 -c", "10.77.0.1", "-g 1", "GID fd77::1"},
		{"asleep, no bytes, one receive", "-n 50 -e -s 0 -r 1 --tclass 8", "10.77.0.1", "", "GID ::ffff:10.77.0.1"},
		{"once", "-n 1 -c", "10.77.0.1", "", "GID ::ffff:10.77.0.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server, port := startWaiting(t, pingArgs(hosts.A, row.both))
			code, stdout, stderr := roced(t, pingArgs(hosts.B, strings.Join([]string{row.both, row.client, "-p", port, row.host}, " "))...)
			if code != 0 || stderr != "" {
				t.Fatalf("client: exit code %d: %s", code, stderr)
			}
			checkSays(t, anyQPN(stdout), "remote address: LID 0x0000, QPN 0xQPN, PSN 0xQPN, "+row.gid, " bytes in ", " Mbit/sec", " usec/iter", "round trip min")
			code, rest := server.wait()
			if code != 0 {
				t.Fatalf("server: exit code %d: %s", code, server.stderr.String())
			}
			checkSays(t, anyQPN(rest), "local address:  LID 0x0000, QPN 0xQPN, PSN 0xQPN, "+row.gid, " usec/iter")
		})
	}
}

func TestPingTotals(t *testing.T) {
	hosts := labtest.Pair(t)
	server, port := startWaiting(t, pingArgs(hosts.A, "-s 100 -n 7"))
	_, stdout, stderr := roced(t, pingArgs(hosts.B, "-s 100 -n 7 10.77.0.1 -p "+port)...)
	checkSays(t, stdout+stderr, "\n1400 bytes in ", "\n7 iters in ")
	_, rest := server.wait()
	checkSays(t, rest, "\n1400 bytes in ", "\n7 iters in ")
}

// TestPingServerOfBadClients: each gets an error that says what was wrong, at once or
// when the first message does not come.
func TestPingServerOfBadClients(t *testing.T) {
	hosts := labtest.Pair(t)
	address := func(d destination) string { return string(d.message()) }
	gid := verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 14: 0, 15: 2}
	for _, row := range []struct{ name, speech, want string }{
		{"goes away", "", "closed the connection"},
		{"goes away halfway", golden[:30], "closed the connection"},
		{"web browser", "GET / HTTP/1.1\r\nHost: somewhere.example\r\nAccept: everything\r\n\r\n", "not an address as ibv_ud_pingpong sends it"},
		{"no GID", address(destination{QPN: 5}), "start it with -g INDEX"},
		{"a group", address(destination{QPN: verbs.MulticastQPN, GID: verbs.GID{0: 0xff, 15: 1}}), "a group's address"},
		{"no queue pair", address(destination{GID: gid}), "takes no messages"},
		{"the connection manager's", address(destination{QPN: 1, GID: gid}), "takes no messages"},
		{"never confirms", address(destination{QPN: 5, GID: gid}), "closed the connection"},
		{"confirms with something else", address(destination{QPN: 5, GID: gid}) + "gone\x00", `"gone\x00"`},
		{"sends nothing", address(destination{QPN: 5, GID: gid}) + doneMessage, "sent 0 messages and received 0, of 9 each way; then nothing came for 50ms (dropped here: none; see the peer's counters)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server, port := startWaiting(t, pingArgs(hosts.A, "-n 9 -W 50ms"))
			conn, err := dialTCP(hosts.B.Path(), "10.77.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, row.speech)
			conn.(*net.TCPConn).CloseWrite()
			code, _ := server.wait()
			if stderr := server.stderr.String(); code != exitFailed || !strings.Contains(stderr, row.want) {
				t.Errorf("exit code %d, want one that says %q: %s", code, row.want, stderr)
			}
		})
	}
}

func TestPingClientErrors(t *testing.T) {
	hosts := labtest.Pair(t)
	silent := fakeServer(t, hosts, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	to := func(args string) []string { return pingArgs(hosts.B, args) }
	checkFailure(t, to("10.77.0.1 -p 1"), exitFailed, "refused", "ibv_ud_pingpong -g INDEX")
	checkFailure(t, to("10.77.0.1 -s 1025"), exitFailed, "RDMA MTU is 1024")
	checkFailure(t, to("-s 2048"), exitFailed, "2048 bytes do not fit a datagram: the RDMA MTU is 1024, as the interface's MTU is 1500")
	checkFailure(t, to("10.77.0.1 -g 100 -p "+silent.port), exitFailed, "--gid-index 100", "has no such line, but 0 (10.77.0.2), 1 (fd77::2)", "roced show gid -d eth0")
	// fakeServer's address is of QP 0x1234, which the client cannot reach.
	checkFailure(t, to("10.77.0.1 -W 50ms -p "+silent.port), exitFailed, "sent 1 messages and received 0, of 1000 each way", "timed out")
	checkFailure(t, to("10.77.0.1 -g 1 -W 50ms -p "+silent.port), exitFailed, "not of one IP version")
}

// TestPingDifferentSizes: the server finds it, and the client gets no answer.
func TestPingDifferentSizes(t *testing.T) {
	hosts := labtest.Pair(t)
	server, port := startWaiting(t, pingArgs(hosts.A, "-n 9 -s 65"))
	checkFailure(t, pingArgs(hosts.B, "-n 9 -s 64 -W 100ms 10.77.0.1 -p "+port), exitFailed, "sent 1 messages and received 0")
	if code, _ := server.wait(); code != exitFailed || !strings.Contains(server.stderr.String(), "64 bytes, not 65; give both sides the same -s") {
		t.Errorf("exit code %d: %s", code, server.stderr.String())
	}
}

// TestPingPeerEndsEarly: what went until then is told.
func TestPingPeerEndsEarly(t *testing.T) {
	hosts := labtest.Pair(t)
	server, port := startWaiting(t, pingArgs(hosts.A, "-n 9"))
	code, stdout, stderr := roced(t, pingArgs(hosts.B, "-n 10 -W 3s 10.77.0.1 -p "+port)...)
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	checkSays(t, stdout, "\n9 iters in ")
	checkSays(t, stderr, "sent 10 messages and received 9, of 10 each way")
	if code, _ := server.wait(); code != 0 {
		t.Errorf("server: exit code %d: %s", code, server.stderr.String())
	}
}

func TestPingEndsOnSignal(t *testing.T) {
	hosts := labtest.Pair(t)
	silent := fakeServer(t, hosts, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	for _, row := range []struct{ args, line string }{
		{"-p 0", "waiting for a client"},
		{"-W 1h 10.77.0.1 -p " + silent.port, "remote address"},
	} {
		c := command(t, pingArgs(hosts.B, row.args)...)
		c.start(t)
		c.await(t, row.line)
		c.Process.Signal(unix.SIGINT)
		if code, _ := c.end(t); code != exitSignal+int(unix.SIGINT) || !strings.Contains(c.stderr.String(), "stopped by SIGINT") {
			t.Errorf("%s: exit code %d: %s", row.args, code, c.stderr.String())
		}
	}
}
