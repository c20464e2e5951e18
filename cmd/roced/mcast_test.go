package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	testGroup4 = "239.1.2.3"
	testGroup6 = "ff0e::1:2:3"
	listening  = "RDMA MTU" // the last line before messages
)

// mcastArgs is a command line of mcast in a namespace.
func mcastArgs(ns *lab.Namespace, args string) []string {
	return append([]string{"mcast", "-d", "eth0", "--netns", ns.Path()}, strings.Fields(args)...)
}

// listen starts a receiver, which is a member when it returns.
func listen(t *testing.T, ns *lab.Namespace, args string) *background {
	t.Helper()
	b := start(t, mcastArgs(ns, args)...)
	b.await(t, listening)
	return b
}

// send sends to a group, and gives what the sender printed.
func send(t *testing.T, ns *lab.Namespace, args string) string {
	t.Helper()
	code, stdout, stderr := roced(t, append(mcastArgs(ns, args), "--send")...)
	if code != 0 || stderr != "" {
		t.Fatalf("%s: exit code %d: %s", args, code, stderr)
	}
	return stdout
}

func checkSays(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("nothing says %q:\n%s", w, text)
		}
	}
}

func TestMcast(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct{ group, mgid, from string }{
		{testGroup4, "::ffff:239.1.2.3", "10.77.0.2"},
		{testGroup6, "ff0e::1:2:3", "fd77::2"},
	} {
		receiver := listen(t, hosts.A, row.group+" --count 6")
		sent := send(t, hosts.B, row.group+" --send-only -n 3")
		qpn := qpNumber.FindStringSubmatch(sent)[1]
		checkSays(t, sent, "sending from "+row.from+", as a send-only member, to group "+row.group, "sent 3 messages of 100 bytes", "dropped: none")
		send(t, hosts.B, row.group+" -n 1 --imm none --size 0")
		send(t, hosts.B, row.group+" -n 1 --imm 0xdeadbeef --size 1024 --rate 1000")
		send(t, hosts.B, row.group+" -n 1 --imm 7")
		code, got := receiver.wait()
		if code != 0 {
			t.Errorf("exit code %d: %s", code, receiver.stderr.String())
		}
		line := row.from + " QP 0xQPN: %d bytes to " + row.mgid + ", %s\n"
		want := strings.Repeat(fmt.Sprintf(line, 100, "immediate data 0x00"+qpn), 3) +
			fmt.Sprintf(line, 0, "no immediate data") +
			fmt.Sprintf(line, 1024, "immediate data 0xdeadbeef") +
			fmt.Sprintf(line, 100, "immediate data 0x00000007") +
			"received 6 messages, 1,424 bytes of payload\ndropped: none\n"
		if got := anyQPN(got); got != want {
			t.Errorf("printed:\n%swant:\n%s", got, want)
		}
	}
}

// TestMcastOnTheWire compares what is sent with what mckey sends (its packets are among
// the captures that package wire is tested with).
func TestMcastOnTheWire(t *testing.T) {
	hosts := labtest.Pair(t)
	s, err := capture.Open(hosts.B, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	send(t, hosts.A, testGroup4+" --send-only -n 1 --size 64")
	p := nextDatagram(t, s)
	const sendOnlyWithImmediate = 0x65
	bth, deth := p.BTH(), p.DETH()
	if op := bth.Opcode(); op != sendOnlyWithImmediate || bth.DestQP() != verbs.MulticastQPN || deth.QKey() != verbs.UDPQKey {
		t.Errorf("opcode 0x%02x, QP %v, Q_Key %v", op, bth.DestQP(), deth.QKey())
	}
	if p.Imm() != uint32(deth.SrcQP()) || len(p.Payload()) != 64 {
		t.Errorf("immediate data 0x%x of QP %v, %d bytes", p.Imm(), deth.SrcQP(), len(p.Payload()))
	}
}

// nextDatagram waits for a RoCEv2 packet.
func nextDatagram(t *testing.T, s *capture.Socket) *wire.Packet {
	t.Helper()
	p := new(wire.Packet)
	err := poll(t.Context(), func() (bool, error) {
		frame, ok, err := s.Next()
		return ok && wire.Parse(frame.Data, p) == wire.FaultNone, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMcastDrops(t *testing.T) {
	hosts := labtest.Pair(t)
	receiver := listen(t, hosts.A, testGroup4+" --qkey 0x11111111 --count 1")
	send(t, hosts.B, testGroup4+" --send-only -n 3")
	send(t, hosts.B, testGroup4+" --send-only -n 1 --qkey 0x11111111")
	_, got := receiver.wait()
	checkSays(t, got, "received 1 message, 100 bytes", "dropped: engine drop_qkey 3", "--qkey 0x11111111")
}

func TestMcastLoopback(t *testing.T) {
	hosts := labtest.Pair(t)
	got := send(t, hosts.A, testGroup6+" -n 50")
	checkSays(t, got, "as a full member", "sent 50 messages", "received 50 messages, 5,000 bytes of payload, 50 of them its own", "dropped: none")
	if n := strings.Count(anyQPN(got), "fd77::1 QP 0xQPN: 100 bytes to "+testGroup6); n != 50 {
		t.Errorf("%d messages are printed:\n%s", n, got)
	}
	got = send(t, hosts.A, testGroup6+" -n 5 --loopback=false")
	checkSays(t, got, "dropped: engine drop_self_loopback 5")
	if strings.Contains(got, "received") {
		t.Errorf("own messages came back:\n%s", got)
	}
}

func TestMcastJSON(t *testing.T) {
	hosts := labtest.Pair(t)
	receiver := start(t, mcastArgs(hosts.A, testGroup4+" --json --count 1")...)
	var s struct{ Start mcastStart }
	if err := json.Unmarshal([]byte(receiver.await(t, `"start"`)), &s); err != nil {
		t.Fatal(err)
	}
	if s.Start.MGID != "::ffff:239.1.2.3" || s.Start.MAC != "01:00:5e:01:02:03" || s.Start.Member != "full" || s.Start.MTU != 1024 || s.Start.QPN < 2 {
		t.Errorf("%+v", s.Start)
	}
	_, summary, _ := strings.Cut(send(t, hosts.B, testGroup4+" --json --quiet --imm none -n 1"), "\n")
	_, got := receiver.wait()
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 2 {
		t.Fatalf("printed %q", got)
	}
	var m message
	if err := json.Unmarshal([]byte(lines[0]), &m); err != nil || m != (message{"10.77.0.2", m.QPN, 100, "::ffff:239.1.2.3", nil}) {
		t.Errorf("%+v, %v", m, err)
	}
	checkSummary(t, lines[1], mcastSummary{Group: testGroup4, Size: 100, Received: 1, Bytes: 100})
	checkSummary(t, summary, mcastSummary{Group: testGroup4, Sent: 1, Size: 100, Received: 1, Own: 1, Bytes: 100})
}

func checkSummary(t *testing.T, line string, want mcastSummary) {
	t.Helper()
	var got struct{ Summary mcastSummary }
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	if len(got.Summary.Drops) != 0 || got.Summary.Drops == nil || got.Summary.Link == nil {
		t.Errorf("drops %v, %v", got.Summary.Drops, got.Summary.Link)
	}
	got.Summary.Drops, got.Summary.Link = nil, nil
	if fmt.Sprint(got.Summary) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got.Summary, want)
	}
}

// groupAddresses are the groups that eth0 has as addresses.
func groupAddresses(t *testing.T, ns *lab.Namespace) (groups []string) {
	t.Helper()
	link, err := ns.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	list, err := ns.Netlink().AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.IP.IsMulticast() {
			groups = append(groups, a.IP.String())
		}
	}
	return groups
}

func TestMcastMembership(t *testing.T) {
	hosts := labtest.Pair(t)
	for method, want := range map[string]int{"auto": 1, "netlink": 1, "socket": 0} {
		receiver := listen(t, hosts.A, testGroup4+" --membership "+method)
		if groups := groupAddresses(t, hosts.A); len(groups) != want {
			t.Errorf("%s: groups as addresses %q, want %d", method, groups, want)
		}
		checkSays(t, receiver.end(t), "received 0 messages", "Nothing comes?")
		if groups := groupAddresses(t, hosts.A); len(groups) != 0 {
			t.Errorf("%s: left behind: %q", method, groups)
		}
	}
}

func TestMcastRuntimeErrors(t *testing.T) {
	hosts := labtest.Pair(t)
	checkFailure(t, mcastArgs(hosts.A, testGroup4+" -d nope"), exitFailed, "no interface", "ip link")
	checkFailure(t, mcastArgs(hosts.A, testGroup4+" --netns no-such-namespace"), exitFailed, "no-such-namespace", "ip netns list")
	checkFailure(t, mcastArgs(hosts.A, testGroup4+" --send --size 1025"), exitFailed, "RDMA MTU is 1024")
	checkFailure(t, mcastArgs(hosts.A, testGroup4+" --send -g 14"), exitFailed, "has no such line, but 0 (10.77.0.1), 1 (fd77::1)")
	receiver := listen(t, hosts.A, testGroup4)
	checkFailure(t, mcastArgs(hosts.A, testGroup4), exitFailed, "another XDP program")
	receiver.end(t)
}

// TestMcastWithoutAddress: ports that capture often have none. A sender needs one.
func TestMcastWithoutAddress(t *testing.T) {
	hosts := labtest.Pair(t)
	removeAddress(t, hosts.A, "10.77.0.1/24")
	checkFailure(t, mcastArgs(hosts.A, testGroup4+" --send"), exitFailed, "no address", "ip addr add")
	checkFailure(t, mcastArgs(hosts.A, testGroup4+" --send --send-only"), exitFailed, "no address", "ip address add")
	receiver := listen(t, hosts.A, testGroup4+" --count 1")
	send(t, hosts.B, testGroup4+" --send-only -n 1")
	code, got := receiver.wait()
	checkSays(t, got, "10.77.0.2 QP", "received 1 message")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, receiver.stderr.String())
	}
}

func removeAddress(t *testing.T, ns *lab.Namespace, cidr string) {
	t.Helper()
	address, err := netlink.ParseAddr(cidr)
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Netlink().AddrDel(eth0(t, ns), address); err != nil {
		t.Fatal(err)
	}
}

func eth0(t *testing.T, ns *lab.Namespace) netlink.Link {
	t.Helper()
	link, err := ns.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// TestMcastZone: ff02::1 is another group on each interface, and the zone says which.
func TestMcastZone(t *testing.T) {
	hosts := labtest.Pair(t)
	receiver := listen(t, hosts.A, "ff02::77%eth0 --count 1")
	send(t, hosts.B, "ff02::77%eth0 --send-only -n 1")
	if code, got := receiver.wait(); code != 0 || !strings.Contains(got, "100 bytes to ff02::77") {
		t.Errorf("exit code %d: %s%s", code, got, receiver.stderr.String())
	}
}

func TestMcastWithoutPrivileges(t *testing.T) {
	hosts := labtest.Pair(t)
	c := command(t, mcastArgs(hosts.A, testGroup4)...)
	c.startWithout(t, unix.CAP_SYS_ADMIN)
	if code, _ := c.end(t); code != exitFailed || !strings.Contains(c.stderr.String(), "CAP_SYS_ADMIN") {
		t.Errorf("exit code %d: %s", code, c.stderr.String())
	}
}

// TestMcastIsInterrupted: that is the normal end, unless another one was asked for.
func TestMcastIsInterrupted(t *testing.T) {
	hosts := labtest.Pair(t)
	for args, want := range map[string]int{
		"":                                      0,
		"--count 1000":                          exitSignal + int(unix.SIGINT),
		"--send --count 0 --rate 1":             0,
		"--send --count 0 --quiet":              0,
		"--send --count 0 --send-only":          0,
		"--send --count 1000 --rate 1":          exitSignal + int(unix.SIGINT),
		"--send --count 1000000000 --send-only": exitSignal + int(unix.SIGINT),
	} {
		c := command(t, mcastArgs(hosts.A, testGroup4+" "+args)...)
		c.start(t)
		c.await(t, listening)
		c.Process.Signal(unix.SIGINT)
		code, rest := c.end(t)
		if code != want || !strings.Contains(rest, "dropped: none") {
			t.Errorf("%q: exit code %d, want %d: %s%s", args, code, want, c.stderr.String(), rest)
		}
		if groups := groupAddresses(t, hosts.A); len(groups) != 0 {
			t.Errorf("%q: left behind: %q", args, groups)
		}
	}
}

func TestMcastOutputIsClosed(t *testing.T) {
	hosts := labtest.Pair(t)
	c := command(t, mcastArgs(hosts.A, testGroup4+" --send -n 0")...)
	c.start(t)
	c.await(t, listening)
	c.pipe.Close()
	if code, _ := c.end(t); code != exitFailed || !strings.Contains(c.stderr.String(), "broken pipe") {
		t.Errorf("exit code %d: %s", code, c.stderr.String())
	}
}
