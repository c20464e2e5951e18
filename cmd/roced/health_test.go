package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// TestInterfaceGoes: each command that runs ends with what has happened, and has not told of
// anything that was not. What waits for TCP ends too.
func TestInterfaceGoes(t *testing.T) {
	for _, row := range []struct{ name, args, until string }{
		{"mcast receives", "mcast 239.1.2.3", listening},
		{"mcast receives a number", "mcast 239.1.2.3 --count 10", listening},
		{"mcast sends", "mcast 239.1.2.3 --send --count 0 --rate 100", listening},
		{"mcast sends only", "mcast 239.1.2.3 --send --send-only --count 0", listening},
		{"perf server", "perf -p 0", "waiting for clients"},
		{"perftest server", "perf -p 0 --perftest --bandwidth", "waiting for"},
		{"ping server", "ping -p 0", "waiting for a client"},
	} {
		t.Run(row.name, func(t *testing.T) {
			hosts := labtest.Pair(t)
			args := append(strings.Fields(row.args), "-d", "eth0", "--netns", hosts.A.Path())
			b := start(t, args...)
			b.await(t, row.until)
			if err := hosts.A.Netlink().LinkDel(eth0(t, hosts.A)); err != nil {
				t.Fatal(err)
			}
			code, rest := b.wait()
			if stderr := b.stderr.String(); code != exitFailed || !strings.Contains(stderr, "roced: device has failed: eth0: the interface has gone") || strings.Count(stderr, "roced: ") != 1 {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			for _, line := range strings.Split(rest, "\n") {
				if strings.Contains(line, " bytes to ") && !strings.Contains(line, "10.77.0.1 QP") {
					t.Errorf("a message that never came: %q", line)
				}
			}
			if strings.Contains(row.args, "--count 10") && !strings.Contains(rest, "received 0 messages") {
				t.Errorf("the summary: %s", rest)
			}
		})
	}
}

// TestFlushedReceivesAreNoMessages: those before them are.
func TestFlushedReceivesAreNoMessages(t *testing.T) {
	left, right := wireHosts(t)
	s := &stream{from: left, to: right, version: "IPv4"}
	if err := s.aimAt(); err != nil {
		t.Fatal(err)
	}
	left.shape(0, verbs.WRSend)
	if err := errors.Join(left.postSends(3), left.reapAll(t.Context(), true)); err != nil {
		t.Fatal(err)
	}
	awaitDelivered(t, right.device, 3)
	if err := right.qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState); err != nil {
		t.Fatal(err)
	}
	n, err := right.arrived(s.completions[:])
	if n != 3 || !errors.Is(err, unix.ECANCELED) {
		t.Errorf("%d messages: %v", n, err)
	}
}

func setMTU(t *testing.T, ns *lab.Namespace, mtu int) {
	t.Helper()
	if err := ns.Netlink().LinkSetMTU(eth0(t, ns), mtu); err != nil {
		t.Fatal(err)
	}
}

// TestMTUIsLowered: the numbers are those of now, and what cannot be sent any more says so.
func TestMTUIsLowered(t *testing.T) {
	hosts := labtest.Pair(t)
	b := start(t, mcastArgs(hosts.A, testGroup4+" --send --send-only --count 0 --rate 100 --size 1024")...)
	b.await(t, listening)
	setMTU(t, hosts.A, 700)
	code, _ := b.wait()
	stderr := b.stderr.String()
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	checkSays(t, stderr, "longer than the RDMA MTU, which is 512 now, as the MTU of eth0 is 700; it was 1024 at the start")
	checkFailure(t, mcastArgs(hosts.A, testGroup4+" --send --size 1000"), exitFailed, "the RDMA MTU is 512, as the interface's MTU is 700")
}

// TestMTUChangeIsLogged: also by a command that sends nothing.
func TestMTUChangeIsLogged(t *testing.T) {
	hosts := labtest.Pair(t)
	c := command(t, mcastArgs(hosts.A, testGroup4)...)
	said := make(lines, 1000)
	c.Stderr = said
	c.start(t)
	c.await(t, listening)
	setMTU(t, hosts.A, 700)
	for line := range said {
		if strings.Contains(line, "RDMA MTU has changed") {
			checkSays(t, line, "device=eth0", "rdma_mtu=512", "interface_mtu=700", "at_start=1024")
			break
		}
	}
	c.Process.Signal(unix.SIGINT)
	if code, _ := c.end(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// lines is a writer whose texts can be waited for.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestCloseWaitsForSends: posted and not reaped is not lost.
func TestCloseWaitsForSends(t *testing.T) {
	left, right := wireHosts(t)
	s := &stream{from: left, to: right, version: "IPv4"}
	e, err := newEndpoint(left.device, endpointAttr{depth: window, size: left.mtu, qkey: testQKey})
	if err != nil {
		t.Fatal(err)
	}
	left.endpoint, e = e, left.endpoint
	defer func() { left.endpoint = e }() // which wireHosts closes
	if err := s.aimAt(); err != nil {
		t.Fatal(err)
	}
	left.shape(0, verbs.WRSend)
	if err := errors.Join(left.postSends(window), left.endpoint.Close()); err != nil {
		t.Fatal(err)
	}
	for got := 0; got < window; {
		n, err := right.receive(t.Context(), true, s.completions[:])
		if err != nil {
			t.Fatalf("%d of %d came: %v", got, window, err)
		}
		got += n
	}
}

// TestLossesOfAnInterfaceThatIsGone: its own counters are absent, not 0.
func TestLossesOfAnInterfaceThatIsGone(t *testing.T) {
	before := []counter{{"engine", "sent", 1, false}, {"link", "rx_dropped", 4, false}}
	after := []counter{{"engine", "sent", 3, false}}
	changed := since(before, after)
	if !slices.Equal(changed, []counter{{"engine", "sent", 2, false}}) {
		t.Errorf("%v", changed)
	}
	if link := linkLosses(changed); link != nil {
		t.Errorf("what is not known is %v", link)
	}
}
