package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// listenOnA listens in namespace A, on any port.
func listenOnA(t *testing.T, hosts *labtest.PairLab) (listener net.Listener) {
	t.Helper()
	err := hosts.A.Do(func() (err error) {
		listener, err = net.Listen("tcp", "10.77.0.1:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// fakeServer listens in namespace A and lets play deal with each client, after the
// exchange of addresses and the client's request.
func fakeServer(t *testing.T, hosts *labtest.PairLab, play func(conn net.Conn)) *perfServer {
	t.Helper()
	listener := listenOnA(t, hosts)
	ended := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answer(conn, func(peer destination) (destination, error) {
				return destination{QPN: 0x1234, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 15: 1}}, nil
			})
			bufio.NewReader(conn).ReadString('\n')
			play(conn)
			conn.Close()
		}
	}()
	return &perfServer{lab: hosts, port: strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)}
}

func say(conn io.Writer, messages ...any) {
	for _, m := range messages {
		json.NewEncoder(conn).Encode(m)
	}
}

func TestClientOfBadServers(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		name string
		play func(conn net.Conn)
		args string
		want string
	}{
		{"goes away at once", func(net.Conn) {}, "--latency", "closed the connection"},
		{"refuses", func(c net.Conn) { say(c, greeting{Error: "not today"}) }, "--latency", "refuses: not today"},
		{"is something else", func(c net.Conn) { io.WriteString(c, "220 mail.example ESMTP\n") }, "--latency", "not roced perf's protocol"},
		{"goes away before a test", func(c net.Conn) { say(c, greeting{}) }, "--latency", "latency of 64 bytes: 10.77.0.1"},
		{"goes away during bandwidth", func(c net.Conn) { say(c, greeting{}, turn{}) }, "--bandwidth --duration 1h --sleep", "closed the connection"},
		{"goes away during latency", func(c net.Conn) { say(c, greeting{}, turn{}) }, "--latency", "closed the connection"},
		{"fails", func(c net.Conn) { say(c, greeting{}, turn{}, outcome{Error: "ran out of luck"}) }, "--bandwidth --duration 1ms", "failed: ran out of luck"},
		{"never answers a ping", func(c net.Conn) { say(c, greeting{}, turn{}); io.Copy(io.Discard, c) }, "--latency", "in a row without an answer"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := fakeServer(t, hosts, row.play)
			checkFailure(t, s.client("10.77.0.1", append(strings.Fields(row.args), "--sizes", "64")...), exitFailed, row.want)
		})
	}
}

func TestPerfRuntimeErrors(t *testing.T) {
	hosts := labtest.Pair(t)
	inA := func(args string) []string {
		return append([]string{"perf", "--netns", hosts.A.Path()}, strings.Fields(args)...)
	}
	bare := labtest.New(t, "roced-test-bare")
	checkFailure(t, inA("-d nope"), exitFailed, "no interface", "ip link")
	checkFailure(t, inA("-d lo"), exitFailed, "loopback")
	checkFailure(t, []string{"perf", "-d", "eth0", "--netns", "no-such-namespace"}, exitFailed, "no-such-namespace", "ip netns list")
	checkFailure(t, []string{"perf", "-d", "eth0", "--netns", bare.Path()}, exitFailed, "no interface")
	checkFailure(t, inA("-d eth0 10.77.0.2 -p 1"), exitFailed, "refused", "is the server running")
	checkFailure(t, inA("-d eth0 10.77.0.2 --sizes 1025"), exitFailed, "RDMA MTU is 1024")
	link, err := hosts.A.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, hosts)
	checkFailure(t, inA("-d eth0 -p "+s.port), exitFailed, "another XDP program")
	s.end(t)
	if err := hosts.A.Netlink().LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	checkFailure(t, inA("-d eth0"), exitFailed, "down", "ip link set dev eth0 up")
}

func TestPerfPortIsTaken(t *testing.T) {
	hosts := labtest.Pair(t)
	taken := fakeServer(t, hosts, func(net.Conn) {})
	checkFailure(t, []string{"perf", "-d", "eth0", "--netns", hosts.A.Path(), "-p", taken.port}, exitFailed, "address already in use")
}

func TestPerfWithoutPrivileges(t *testing.T) {
	hosts := labtest.Pair(t)
	c := command(t, "perf", "-d", "eth0", "--netns", hosts.A.Path())
	c.startWithout(t, unix.CAP_SYS_ADMIN)
	if code, _ := c.end(t); code != exitFailed || !strings.Contains(c.stderr.String(), "CAP_SYS_ADMIN") {
		t.Errorf("exit code %d: %s", code, c.stderr.String())
	}
}

// TestServerEndsOnSignal: that is its normal end.
func TestServerEndsOnSignal(t *testing.T) {
	hosts := labtest.Pair(t)
	c := command(t, "perf", "-d", "eth0", "--netns", hosts.A.Path(), "-p", "0")
	c.start(t)
	c.await(t, "waiting for clients")
	c.Process.Signal(unix.SIGINT)
	if code, _ := c.end(t); code != 0 {
		t.Errorf("exit code %d: %s", code, c.stderr.String())
	}
}

// TestClientIsInterrupted: the server goes on to the next one.
func TestClientIsInterrupted(t *testing.T) {
	s := startServer(t, labtest.Pair(t))
	defer s.end(t)
	args := s.client("10.77.0.1", "--sizes", "64", "--bandwidth", "--duration", "1h", "--sleep")
	c := command(t, args...)
	c.start(t)
	s.await(t, "1 tests")
	c.Process.Signal(unix.SIGINT)
	if code, _ := c.end(t); code != exitSignal+int(unix.SIGINT) {
		t.Errorf("exit code %d: %s", code, c.stderr.String())
	}
	measured(t, s.client("10.77.0.1", "--latency", "--sizes", "64", "-n", "10"))
}

func TestRequestCheck(t *testing.T) {
	good := test{Kind: latency, Size: 64}
	for _, row := range []struct {
		r    request
		want error
	}{
		{request{protocolVersion, []test{good}}, nil},
		{request{protocolVersion + 1, []test{good}}, unix.EPROTONOSUPPORT},
		{request{protocolVersion, nil}, unix.EINVAL},
		{request{protocolVersion, make([]test, maxTests+1)}, unix.EINVAL},
		{request{protocolVersion, []test{good, {Kind: "magic"}}}, unix.EINVAL},
		{request{protocolVersion, []test{{Kind: bandwidth, Size: 1025}}}, unix.EMSGSIZE},
		{request{protocolVersion, []test{{Kind: bandwidth, Size: -1}}}, unix.EMSGSIZE},
	} {
		if err := row.r.check(1024); !errors.Is(err, row.want) {
			t.Errorf("%d tests, version %d: %v, want %v", len(row.r.Tests), row.r.Version, err, row.want)
		}
	}
}
