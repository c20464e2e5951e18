// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

const (
	testGroup4 = "239.1.2.3"
	testGroup6 = "ff0e::1:2:3"
	listening  = "RDMA MTU" // the last line before messages
)

// mcastArgs returns a command line of mcast in a namespace.
func mcastArgs(ns *lab.Namespace, args string) []string {
	return append([]string{"mcast", "-d", "eth0", "--netns", ns.Path()}, strings.Fields(args)...)
}

// listen starts a receiver, which is a member when it returns.
func listen(t *testing.T, ns *lab.Namespace, args string) *cmdtest.Background {
	t.Helper()
	b := cmdtest.Start(t, mcastArgs(ns, args)...)
	b.Await(t, listening)
	return b
}

// send sends to a group and returns the sender's output.
func send(t *testing.T, ns *lab.Namespace, args string) string {
	t.Helper()
	code, stdout, stderr := cmdtest.Run(t, append(mcastArgs(ns, args), "--send")...)
	if code != 0 || stderr != "" {
		t.Fatalf("%s: exit code %d: %s", args, code, stderr)
	}
	return stdout
}

func TestMcast(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct{ group, mgid, from string }{
		{testGroup4, "::ffff:239.1.2.3", "10.77.0.2"},
		{testGroup6, "ff0e::1:2:3", "fd77::2"},
	} {
		receiver := listen(t, hosts.A, row.group+" --count 6")
		sent := send(t, hosts.B, row.group+" --send-only -n 3")
		qpn := cmdtest.QPNumber.FindStringSubmatch(sent)[1]
		cmdtest.CheckSays(t, sent, "sending from "+row.from+", as a send-only member, to group "+row.group, "sent 3 messages of 100 bytes", "dropped: none")
		send(t, hosts.B, row.group+" -n 1 --imm none --size 0")
		send(t, hosts.B, row.group+" -n 1 --imm 0xdeadbeef --size 1024 --rate 1000")
		send(t, hosts.B, row.group+" -n 1 --imm 7")
		code, got := receiver.Wait()
		if code != 0 {
			t.Errorf("exit code %d: %s", code, receiver.Stderr())
		}
		line := row.from + " QP 0xQPN: %d bytes to " + row.mgid + ", %s\n"
		want := strings.Repeat(fmt.Sprintf(line, 100, "immediate data 0x00"+qpn), 3) +
			fmt.Sprintf(line, 0, "no immediate data") +
			fmt.Sprintf(line, 1024, "immediate data 0xdeadbeef") +
			fmt.Sprintf(line, 100, "immediate data 0x00000007") +
			"received 6 messages, 1,424 bytes of payload\ndropped: none\n"
		if got := cmdtest.AnyQPN(got); got != want {
			t.Errorf("printed:\n%swant:\n%s", got, want)
		}
	}
}

// TestMcastOnTheWire compares sent packets with those of mckey, which are among the captures of
// package wire's tests.
func TestMcastOnTheWire(t *testing.T) {
	t.Parallel()
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
	for {
		frame, ok, err := s.Next()
		if err == nil {
			err = context.Cause(t.Context())
		}
		switch {
		case err != nil:
			t.Fatal(err)
		case ok && wire.Parse(frame.Data, p) == wire.FaultNone:
			return p
		}
		time.Sleep(time.Millisecond)
	}
}

func TestMcastDrops(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	receiver := listen(t, hosts.A, testGroup4+" --qkey 0x11111111 --count 1")
	send(t, hosts.B, testGroup4+" --send-only -n 3")
	send(t, hosts.B, testGroup4+" --send-only -n 1 --qkey 0x11111111")
	_, got := receiver.Wait()
	cmdtest.CheckSays(t, got, "received 1 message, 100 bytes", "dropped: engine drop_qkey 3", "--qkey 0x11111111")
}

// TestMcastZeroQKey: 0 is a valid Q_Key.
func TestMcastZeroQKey(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	receiver := listen(t, hosts.A, testGroup4+" --qkey 0 --count 1")
	send(t, hosts.B, testGroup4+" --send-only -n 2")
	send(t, hosts.B, testGroup4+" --send-only -n 1 --qkey 0")
	_, got := receiver.Wait()
	cmdtest.CheckSays(t, got, "received 1 message, 100 bytes", "dropped: engine drop_qkey 2")
}

func TestMcastLoopback(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	got := send(t, hosts.A, testGroup6+" -n 50")
	cmdtest.CheckSays(t, got, "as a full member", "sent 50 messages", "received 50 messages, 5,000 bytes of payload, 50 of them own messages", "dropped: none")
	if n := strings.Count(cmdtest.AnyQPN(got), "fd77::1 QP 0xQPN: 100 bytes to "+testGroup6); n != 50 {
		t.Errorf("printed %d messages:\n%s", n, got)
	}
	got = send(t, hosts.A, testGroup6+" -n 5 --loopback=false")
	cmdtest.CheckSays(t, got, "dropped: engine drop_self_loopback 5")
	if strings.Contains(got, "received") {
		t.Errorf("own messages received:\n%s", got)
	}
}

func TestMcastJSON(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	receiver := cmdtest.Start(t, mcastArgs(hosts.A, testGroup4+" --json --count 1")...)
	var s struct{ Start joined }
	if err := json.Unmarshal([]byte(receiver.Await(t, `"start"`)), &s); err != nil {
		t.Fatal(err)
	}
	if s.Start.MGID != "::ffff:239.1.2.3" || s.Start.MAC != "01:00:5e:01:02:03" || s.Start.Member != "full" || s.Start.MTU != 1024 || s.Start.QPN < 2 {
		t.Errorf("%+v", s.Start)
	}
	_, summary, _ := strings.Cut(send(t, hosts.B, testGroup4+" --json --quiet --imm none -n 1"), "\n")
	_, got := receiver.Wait()
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 2 {
		t.Fatalf("printed %q", got)
	}
	var m message
	if err := json.Unmarshal([]byte(lines[0]), &m); err != nil || m != (message{"10.77.0.2", m.QPN, 100, "::ffff:239.1.2.3", nil}) {
		t.Errorf("%+v, %v", m, err)
	}
	checkSummary(t, lines[1], totals{Group: testGroup4, Size: 100, Received: 1, Bytes: 100})
	checkSummary(t, summary, totals{Group: testGroup4, Sent: 1, Size: 100, Received: 1, Own: 1, Bytes: 100})
}

// TestMcastJSONOfReceivers: a receiver reports the interface's address, of either IP version.
func TestMcastJSONOfReceivers(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for group, want := range map[string]string{testGroup4: "10.77.0.1", testGroup6: "fd77::1"} {
		receiver := cmdtest.Start(t, mcastArgs(hosts.A, group+" --json")...)
		var s struct{ Start joined }
		if err := json.Unmarshal([]byte(receiver.Await(t, `"start"`)), &s); err != nil || s.Start.Address != want {
			t.Errorf("%s: address %q, %v; want %s", group, s.Start.Address, err, want)
		}
		receiver.End(t)
	}
}

func checkSummary(t *testing.T, line string, want totals) {
	t.Helper()
	var got struct{ Summary totals }
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

func TestXDPMode(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for args, want := range map[string]string{"--xdp generic": "XDP generic", "--xdp native --copy": "XDP native, AF_XDP copy"} {
		receiver := cmdtest.Start(t, mcastArgs(hosts.A, testGroup4+" "+args)...)
		cmdtest.CheckSays(t, receiver.Await(t, listening), want)
		receiver.End(t)
	}
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4+" --zerocopy"), cli.ExitFailed, "zero-copy")
}

// TestHintsNameCounters: hints are for existing counters.
func TestHintsNameCounters(t *testing.T) {
	for _, h := range dropHints {
		cardtest.CheckCounters(t, h.drop)
	}
}
