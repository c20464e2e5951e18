// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

func say(conn io.Writer, messages ...any) {
	for _, m := range messages {
		json.NewEncoder(conn).Encode(m)
	}
}

// welcome is the greeting of a correct server.
var welcome = protocol.Greeting{Server: card.Side{Device: "fake", Address: "10.77.0.1", MTU: 1024}}

func TestClientOfBadServers(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		name string
		play func(conn net.Conn)
		args string
		want string
	}{
		{"disconnects at once", func(net.Conn) {}, "--latency", "closed the connection"},
		{"refuses", func(c net.Conn) { say(c, protocol.Greeting{Error: "not today"}) }, "--latency", "rejects the request: not today"},
		{"another protocol", func(c net.Conn) { io.WriteString(c, "220 mail.example ESMTP\n") }, "--latency", "invalid in roced perf's protocol"},
		{"sends null", func(c net.Conn) { say(c, nil) }, "--latency", "invalid in roced perf's protocol"},
		{"refuses in colour", func(c net.Conn) { say(c, protocol.Greeting{Error: "\x1b[31mno\r\n"}) }, "--latency", `rejects the request: \x1b[31mno\r\n`},
		{"refuses, and no more", func(c net.Conn) { io.WriteString(c, `{"error":"not today"}`+"\n") }, "--latency", "rejects the request: not today"},
		{"has no MTU", func(c net.Conn) { say(c, protocol.Greeting{}) }, "--latency", "the peer sent an invalid value, server.mtu 0"},
		{"never ends a line", func(c net.Conn) { io.WriteString(c, strings.Repeat("x", 1<<21)) }, "--latency", "the peer's line is longer than 1 MiB"},
		{"disconnects before a test", func(c net.Conn) { say(c, welcome) }, "--latency", "latency of 64 bytes: 10.77.0.1"},
		{"disconnects during bandwidth", func(c net.Conn) { say(c, welcome, protocol.Turn{}) }, "--bandwidth --duration 1h --sleep", "closed the connection"},
		{"disconnects during latency", func(c net.Conn) { say(c, welcome, protocol.Turn{}) }, "--latency", "closed the connection"},
		{"fails", func(c net.Conn) { say(c, welcome, protocol.Turn{}, protocol.Outcome{Error: "ran out of luck"}) }, "--bandwidth --duration 1ms", "failed: ran out of luck"},
		{"fails in colour", func(c net.Conn) { say(c, welcome, protocol.Turn{}, protocol.Outcome{Error: "\x1b[31mno"}) }, "--bandwidth --duration 1ms", `failed: \x1b[31mno`},
		{"sends a turn twice", func(c net.Conn) { say(c, welcome, protocol.Turn{}, protocol.Turn{}, protocol.Turn{}) }, "--bandwidth --duration 1ms", `no "received"`},
		{"received more than was sent", afterTheWord(protocol.Outcome{Received: math.MaxUint64}), "--bandwidth --duration 1ms", "the peer sent an invalid value, received 18,446,744,073,709,551,615 of "},
		{"dropped too much", afterTheWord(protocol.Outcome{Drops: map[string]uint64{"\x1b": math.MaxUint64}}), "--bandwidth --duration 1ms", `the peer sent an invalid value, drops \x1b 18,446`},
		{"never answers a ping", func(c net.Conn) { say(c, welcome, protocol.Turn{}); io.Copy(io.Discard, c) }, "--latency", "consecutive round trips; check that firewalls on both hosts and between them accept UDP port 4791"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &perfServer{lab: hosts, port: cmdtest.FakeServer(t, hosts, row.play)}
			cmdtest.CheckFailure(t, s.client("10.77.0.1", append(strings.Fields(row.args), "--sizes", "64")...), cli.ExitFailed, row.want)
		})
	}
}

// afterTheWord acts as a server that sends an outcome after the client's end of a test.
func afterTheWord(o protocol.Outcome) func(net.Conn) {
	return func(c net.Conn) {
		say(c, welcome, protocol.Turn{})
		bufio.NewReader(c).ReadString('\n')
		say(c, o)
		io.Copy(io.Discard, c)
	}
}

// TestTextsOfAPeer: unprintable bytes from a peer do not reach the table or JSON.
func TestTextsOfAPeer(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	const evil = "\x1b]0;OWNED\a\nforged\r"
	forged := protocol.Greeting{Server: card.Side{Device: evil, Address: evil, MTU: 1024, XDP: evil, AFXDP: evil}}
	s := &perfServer{lab: hosts, port: cmdtest.FakeServer(t, hosts, func(c net.Conn) {
		say(c, forged, protocol.Turn{})
		bufio.NewReader(c).ReadString('\n')
		say(c, protocol.Outcome{Received: 1, Drops: map[string]uint64{evil: 1}, Link: map[string]uint64{evil: 1}})
	})}
	for _, format := range [][]string{nil, {"--json"}} {
		code, stdout, stderr := cmdtest.Run(t, s.client("10.77.0.1", append(format, "--bandwidth", "--sizes", "64", "--duration", "100ms")...)...)
		if code != 0 || strings.ContainsAny(stdout+stderr, "\x1b\a\r") || strings.Contains(stdout, "\nforged") {
			t.Errorf("exit code %d: %q, %q", code, stdout, stderr)
		}
		if got := strings.Count(strings.ReplaceAll(stdout, `\\`, `\`), `\x1b]0;OWNED\a\nforged\r`); got != 6 {
			t.Errorf("printed %d times: %s", got, stdout)
		}
	}
}

func TestPerfRuntimeErrors(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	inA := func(args string) []string {
		return append([]string{"perf", "--netns", hosts.A.Path()}, strings.Fields(args)...)
	}
	bare := labtest.New(t, "roced-test-bare")
	cmdtest.CheckFailure(t, inA("-d nope"), cli.ExitFailed, "no interface", "ip link")
	cmdtest.CheckFailure(t, inA("-d lo"), cli.ExitFailed, "loopback")
	cmdtest.CheckFailure(t, []string{"perf", "-d", "eth0", "--netns", "no-such-namespace"}, cli.ExitFailed, "no-such-namespace", "ip netns list")
	cmdtest.CheckFailure(t, []string{"perf", "-d", "eth0", "--netns", bare.Path()}, cli.ExitFailed, "no interface")
	cmdtest.CheckFailure(t, inA("-d eth0 10.77.0.2 -p 1"), cli.ExitFailed, "refused", "check that the server runs there")
	cmdtest.CheckFailure(t, inA("-d eth0 10.77.0.2 --sizes 1025"), cli.ExitFailed, "RDMA MTU, which is 1024")
	link, err := hosts.A.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, hosts)
	cmdtest.CheckFailure(t, inA("-d eth0 -p "+s.port), cli.ExitFailed, "another XDP program")
	s.End(t)
	if err := hosts.A.Netlink().LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	cmdtest.CheckFailure(t, inA("-d eth0"), cli.ExitFailed, "down", "ip link set dev eth0 up")
}

func TestPerfPortIsTaken(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	taken := cmdtest.FakeServer(t, hosts, func(net.Conn) {})
	cmdtest.CheckFailure(t, []string{"perf", "-d", "eth0", "--netns", hosts.A.Path(), "-p", taken}, cli.ExitFailed, "address already in use")
}

func TestPerfWithoutPrivileges(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	c := cmdtest.Command(t, "perf", "-d", "eth0", "--netns", hosts.A.Path())
	c.StartWithout(t, unix.CAP_SYS_ADMIN)
	if code, _ := c.End(t); code != cli.ExitFailed || !strings.Contains(c.Said(), "CAP_SYS_ADMIN") {
		t.Errorf("exit code %d: %s", code, c.Said())
	}
}

// TestClientIsInterrupted: the server serves the next client.
func TestClientIsInterrupted(t *testing.T) {
	t.Parallel()
	s := startServer(t, labtest.Pair(t))
	defer s.End(t)
	args := s.client("10.77.0.1", "--sizes", "64", "--bandwidth", "--duration", "1h", "--sleep")
	c := cmdtest.Command(t, args...)
	c.Start(t)
	s.Await(t, ": 1 test")
	c.Process.Signal(unix.SIGINT)
	if code, _ := c.End(t); code != cli.ExitSignal+int(unix.SIGINT) {
		t.Errorf("exit code %d: %s", code, c.Said())
	}
	measured(t, s.client("10.77.0.1", "--latency", "--sizes", "64", "-n", "10"))
}

// TestFinishedSizesArePrinted: the results of finished sizes are printed even if the client is interrupted at a later
// size.
func TestFinishedSizesArePrinted(t *testing.T) {
	t.Parallel()
	s := startServer(t, labtest.Pair(t))
	defer s.End(t)
	c := cmdtest.Command(t, s.client("10.77.0.1", "--sizes", "64"+strings.Repeat(",65", 60), "--bandwidth", "--duration", "1s", "--sleep")...)
	c.Start(t)
	s.Await(t, "bandwidth of 64 bytes: ")
	s.Await(t, "bandwidth of 65 bytes: ") // so the client has received the first result
	c.Process.Signal(unix.SIGINT)
	code, stdout := c.End(t)
	if code != cli.ExitSignal+int(unix.SIGINT) || !strings.Contains(stdout, "RECEIVED/s") || !strings.Contains(stdout, "\n      64 ") {
		t.Errorf("exit code %d: %s%s", code, stdout, c.Said())
	}
}
