// SPDX-License-Identifier: Apache-2.0

package ping

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// pingArgs returns a command line of ping in a namespace.
func pingArgs(ns *lab.Namespace, args string) []string {
	return append([]string{"ping", "-d", "eth0", "--netns", ns.Path()}, strings.Fields(args)...)
}

func TestPing(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct{ name, both, host, client, gid string }{
		{"IPv4", "-n 50", "10.77.0.1", "", "GID ::ffff:10.77.0.1"},
		{"IPv6", "-n 50 --check", "fd77::1", "", "GID fd77::1"},
		{"IPv6, met over IPv4", "-n 50 --check", "10.77.0.1", "-g 1", "GID fd77::1"},
		{"asleep, no bytes, one receive", "-n 50 -e -s 0 -r 1 --tclass 8", "10.77.0.1", "", "GID ::ffff:10.77.0.1"},
		{"reliable connection, IPv6", "-n 50 --check --rc -s 10000", "fd77::1", "", "GID fd77::1"},
		{"unreliable connection, asleep", "-n 50 --check -e --uc -s 3000", "10.77.0.1", "", "GID ::ffff:10.77.0.1"},
		{"shared receives", "-n 50 --check --srq -m 512 -r 3 -s 2000", "10.77.0.1", "", "GID ::ffff:10.77.0.1"},
		{"once", "-n 1 --check", "10.77.0.1", "", "GID ::ffff:10.77.0.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server, port := cmdtest.StartWaiting(t, pingArgs(hosts.A, row.both))
			code, stdout, stderr := cmdtest.Run(t, pingArgs(hosts.B, strings.Join([]string{row.both, row.client, "-p", port, row.host}, " "))...)
			if code != 0 || stderr != "" {
				t.Fatalf("client: exit code %d: %s", code, stderr)
			}
			cmdtest.CheckSays(t, cmdtest.AnyQPN(stdout), "remote address: LID 0x0000, QPN 0xQPN, PSN 0xQPN, "+row.gid, " bytes in ", " Mbit/sec", " usec/iter", "round trip min")
			code, rest := server.Wait()
			if code != 0 {
				t.Fatalf("server: exit code %d: %s", code, server.Stderr())
			}
			cmdtest.CheckSays(t, cmdtest.AnyQPN(rest), "local address:  LID 0x0000, QPN 0xQPN, PSN 0xQPN, "+row.gid, " usec/iter")
		})
	}
}

// TestPingByID: the two sides exchange addresses with connection ids, over either IP version.
func TestPingByID(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct{ server, client, says string }{
		{"--cm", "--cm 10.77.0.1", "GID ::ffff:10.77.0.1"}, {"--cm", "--cm fd77::1", "GID fd77::1"}, {"--cm -g 1", "--cm -g 1 fd77::1", "GID fd77::1"},
		{"--cm --rc -s 10000", "--cm --rc -s 10000 10.77.0.1", "GID ::ffff:10.77.0.1"}, {"--cm --srq -e", "--cm --srq -e fd77::1", "GID fd77::1"},
	} {
		checkPingByID(t, pingArgs(hosts.A, row.server), pingArgs(hosts.B, row.client), row.says)
	}
}

func TestPingTotals(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	server, port := cmdtest.StartWaiting(t, pingArgs(hosts.A, "-s 100 -n 7"))
	_, stdout, stderr := cmdtest.Run(t, pingArgs(hosts.B, "-s 100 -n 7 10.77.0.1 -p "+port)...)
	cmdtest.CheckSays(t, stdout+stderr, "\n1400 bytes in ", "\n7 iters in ")
	_, rest := server.Wait()
	cmdtest.CheckSays(t, rest, "\n1400 bytes in ", "\n7 iters in ")
}

// TestPingServerOfBadClients: the error for each client states the cause, immediately or when the first message is
// missing.
func TestPingServerOfBadClients(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	address := func(d meet.Destination) string { return string(d.Message()) }
	gid := verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 14: 0, 15: 2}
	for _, row := range []struct{ name, speech, want string }{
		{"disconnects", "", "closed the connection"},
		{"disconnects halfway", cmdtest.PingpongAddress[:30], "closed the connection"},
		{"web browser", "GET / HTTP/1.1\r\nHost: somewhere.example\r\nAccept: everything\r\n\r\n", "not an address in the format of ibv_ud_pingpong"},
		{"perftest", "6.06" + strings.Repeat("\x00", 12), "the client is a perftest program (6.06); start roced perf with --perftest, --rc or --uc: "},
		{"no GID", address(meet.Destination{QPN: 5}), "start the peer with -g INDEX"},
		{"a group", address(meet.Destination{QPN: verbs.MulticastQPN, GID: verbs.GID{0: 0xff, 15: 1}}), "a group address"},
		{"no queue pair", address(meet.Destination{GID: gid}), "does not receive messages"},
		{"the connection manager's", address(meet.Destination{QPN: 1, GID: gid}), "does not receive messages"},
		{"never confirms", address(meet.Destination{QPN: 5, GID: gid}), "closed the connection"},
		{"confirms with something else", address(meet.Destination{QPN: 5, GID: gid}) + "gone\x00", `"gone\x00"`},
		{"sends nothing", address(meet.Destination{QPN: 5, GID: gid}) + meet.DoneMessage, "sent 0 messages and received 0 of 9 each way; no further message received in 50ms (dropped here: none (check the counters of the peer))"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server, port := cmdtest.StartWaiting(t, pingArgs(hosts.A, "-n 9 -W 50ms"))
			conn, err := cmdtest.Dial(hosts.B.Path(), "10.77.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, row.speech)
			conn.(*net.TCPConn).CloseWrite()
			code, _ := server.Wait()
			if stderr := server.Stderr(); code != cli.ExitFailed || !strings.Contains(stderr, row.want) {
				t.Errorf("exit code %d, want an error with %q: %s", code, row.want, stderr)
			}
		})
	}
}

func TestPingClientErrors(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	silent := cmdtest.FakeServer(t, hosts, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	to := func(args string) []string { return pingArgs(hosts.B, args) }
	cmdtest.CheckFailure(t, to("10.77.0.1 -p 1"), cli.ExitFailed, "refused", "without --cm, or ibv_ud_pingpong -g INDEX")
	cmdtest.CheckFailure(t, to("10.77.0.1 -s 1025"), cli.ExitFailed, "RDMA MTU, which is 1024")
	cmdtest.CheckFailure(t, to("-s 2048"), cli.ExitFailed, "2048 bytes exceed the RDMA MTU, which is 1024 because the MTU of the interface is 1500")
	cmdtest.CheckFailure(t, to("10.77.0.1 -g 100 -p "+silent), cli.ExitFailed, "--gid-index 100", "the GID table of eth0 has 0 (10.77.0.2), 1 (fd77::2)", "roced show gid -d eth0")
	// FakeServer's address has QP 0x1234, which does not exist.
	cmdtest.CheckFailure(t, to("10.77.0.1 -W 50ms -p "+silent), cli.ExitFailed, "sent 1 messages and received 0 of 1000 each way", "accept UDP port 4791 (nft list ruleset)", "sufficient for messages of 1024 bytes", "timed out")
	cmdtest.CheckFailure(t, to("10.77.0.1 --rc -p "+silent), cli.ExitFailed, "the peer does not respond", "accept UDP port 4791", "sufficient for messages of 1024 bytes")
	cmdtest.CheckFailure(t, to("10.77.0.1 --cm"), cli.ExitFailed, "10.77.0.1 does not respond", "roced ping --cm -d DEVICE", "accept UDP port 4791", "timed out")
	cmdtest.CheckFailure(t, to("10.77.0.1 -g 1 -W 50ms -p "+silent), cli.ExitFailed, "has another IP version")
}

// TestPingsDiffer: both sides end immediately, and report the peer's setting and the remedy.
func TestPingsDiffer(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct{ server, client, wantServer, wantClient string }{
		{"-s 65 -n 9", "-s 64 -n 9", "the peer runs roced ping --size 64, this side runs roced ping --size 65: use the same --size on both sides", "the peer runs roced ping --size 65"},
		{"--rc", "", "add --rc --mtu 1024 there or omit it here", "the peer runs roced ping --rc --size 1024 --mtu 1024, this side runs roced ping --size 1024: add --rc --mtu 1024 here"},
		{"", "--uc", "add --uc --mtu 1024 here", "add --uc --mtu 1024 there"},
		{"--srq", "--rc", "add --rc here or omit it there; add --srq there", "add --srq here or omit it there; add --rc there"},
		{"--rc", "--srq", "add --srq here", "add --rc here"},
		{"--check", "", "add --check there", "add --check here"},
		{"--rc -m 512", "--rc", "the same --mtu", "the same --mtu"},
	} {
		server, port := cmdtest.StartWaiting(t, pingArgs(hosts.A, row.server))
		cmdtest.CheckFailure(t, pingArgs(hosts.B, row.client+" -W 1h 10.77.0.1 -p "+port), cli.ExitFailed, row.wantClient)
		if code, _ := server.Wait(); code != cli.ExitFailed || !strings.Contains(server.Stderr(), row.wantServer) {
			t.Errorf("%q: exit code %d, want an error with %q: %s", row.server, code, row.wantServer, server.Stderr())
		}
	}
}

// TestPingPeerEndsEarly: the messages exchanged before the end are reported.
func TestPingPeerEndsEarly(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	server, port := cmdtest.StartWaiting(t, pingArgs(hosts.A, "-n 9"))
	code, stdout, stderr := cmdtest.Run(t, pingArgs(hosts.B, "-n 10 -W 3s 10.77.0.1 -p "+port)...)
	if code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	cmdtest.CheckSays(t, stdout, "\n9 iters in ")
	cmdtest.CheckSays(t, stderr, "sent 10 messages and received 9 of 10 each way", "the peer uses --count 9, this side --count 10: use the same on both sides")
	if code, _ := server.Wait(); code != 0 {
		t.Errorf("server: exit code %d: %s", code, server.Stderr())
	}
}

// TestPingBetweenMTUs: a message above the peer's MTU is an error before it is sent.
func TestPingBetweenMTUs(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	cmdtest.SetMTU(t, hosts.B, 3000)
	server, port := cmdtest.StartWaiting(t, pingArgs(hosts.A, "-s 1000"))
	cmdtest.CheckFailure(t, pingArgs(hosts.B, "-s 2000 10.77.0.1 -p "+port), cli.ExitFailed, "the same --size")
	server.Wait()
	server, port = cmdtest.StartWaiting(t, pingArgs(hosts.A, "--rc -m 2048"))
	cmdtest.CheckFailure(t, pingArgs(hosts.B, "--rc -m 2048 10.77.0.1 -p "+port), cli.ExitFailed, "packets of 2048 bytes exceed the peer's RDMA MTU of 1024: use --mtu of at most 1024 on both sides, or raise the MTU of the interface there")
	if code, _ := server.Wait(); code != cli.ExitFailed || !strings.Contains(server.Stderr(), "packets of 2048 bytes exceed this side's RDMA MTU of 1024: use --mtu of at most 1024 on both sides, or raise the MTU of the interface here") {
		t.Errorf("exit code %d: %s", code, server.Stderr())
	}
}

// TestPingVerbose: each message is printed, on the client with its round trip time.
func TestPingVerbose(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	server, port := cmdtest.StartWaiting(t, pingArgs(hosts.A, "-c 3 -v -s 1k"))
	_, stdout, stderr := cmdtest.Run(t, pingArgs(hosts.B, "-c 3 -v -s 1k 10.77.0.1 -p "+port)...)
	cmdtest.CheckSays(t, stdout+stderr, "\n1024 bytes from 10.77.0.1: message 1, ", " usec\n1024 bytes from 10.77.0.1: message 3, ", "\n3 iters in ")
	_, rest := server.Wait()
	cmdtest.CheckSays(t, rest, "\n1024 bytes from 10.77.0.2: message 1\n", "message 3, ")
}

func TestPingEndsOnSignal(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	silent := cmdtest.FakeServer(t, hosts, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	for _, row := range []struct{ args, line string }{
		{"-p 0", "waiting for a client"},
		{"-W 1h 10.77.0.1 -p " + silent, "remote address"},
	} {
		c := cmdtest.Command(t, pingArgs(hosts.B, row.args)...)
		c.Start(t)
		c.Await(t, row.line)
		c.Process.Signal(unix.SIGINT)
		if code, _ := c.End(t); code != cli.ExitSignal+int(unix.SIGINT) || !strings.Contains(c.Said(), "stopped by SIGINT") {
			t.Errorf("%s: exit code %d: %s", row.args, code, c.Said())
		}
	}
}

// TestPingTrafficClass: --tclass sets the TOS of sent IPv4 packets.
func TestPingTrafficClass(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	s, err := capture.Open(hosts.A, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	silent := cmdtest.FakeServer(t, hosts, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	cmdtest.CheckFailure(t, pingArgs(hosts.B, "-W 50ms --tclass 0x6a 10.77.0.1 -p "+silent), cli.ExitFailed, "sent 1 messages and received 0")
	const tos = 14 + 1
	var classes []byte
	for frame, err := range s.Frames() {
		if err != nil {
			t.Fatal(err)
		}
		var p wire.Packet
		if wire.Parse(frame.Data, &p) == wire.FaultNone {
			classes = append(classes, frame.Data[tos])
		}
	}
	if !slices.Contains(classes, 0x6a) {
		t.Errorf("got messages with TOS %x, want 0x6a", classes)
	}
}

// TestPingLinkLocal: the zone of a link-local address must be the device's interface, over TCP and by connection ids.
func TestPingLinkLocal(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	var address string
	waittest.Eventually(t, "A has a link-local address", func() bool {
		list, err := hosts.A.Netlink().AddrList(cmdtest.Eth0(t, hosts.A), unix.AF_INET6)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if a.IP.IsLinkLocalUnicast() && a.Flags&unix.IFA_F_TENTATIVE == 0 {
				address = a.IP.String()
			}
		}
		return address != ""
	})
	for _, by := range []string{"", "--cm", "--rc --cm"} {
		for _, zone := range []string{"%eth0", ""} {
			server, port := cmdtest.StartWaiting(t, pingArgs(hosts.A, "-n 5 "+by))
			code, _, stderr := cmdtest.Run(t, pingArgs(hosts.B, "-n 5 "+by+" -p "+port+" "+address+zone)...)
			if code != 0 {
				t.Fatalf("%q, zone %q: exit code %d: %s", by, zone, code, stderr)
			}
			server.Wait()
		}
		cmdtest.CheckFailure(t, pingArgs(hosts.B, by+" "+address+"%lo"), cli.ExitFailed, "is interface lo, but the device is on eth0")
	}
}
