// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/perf/report"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
)

func connectionArgs(ns *lab.Namespace, args string) []string {
	return append([]string{"perf", "-d", "eth0", "--netns", ns.Path()}, strings.Fields(args)...)
}

// connectionsBetween runs both sides with the same flags and returns the client's report. Reliable connections have a
// long local ACK timeout, so that the tests also pass on a slow machine.
func connectionsBetween(t *testing.T, hosts *labtest.PairLab, both, host string) (client report.Report, serverText string) {
	t.Helper()
	if strings.Contains(both, "--rc") {
		both += " --ack-timeout 4s"
	}
	server, port := cmdtest.StartWaiting(t, connectionArgs(hosts.A, both))
	client = measured(t, connectionArgs(hosts.B, strings.Join([]string{both, host, "-p", port}, " ")))
	code, serverText := server.Wait()
	if code != 0 {
		t.Fatalf("server: exit code %d: %s", code, server.Stderr())
	}
	return client, serverText
}

func TestConnectionsBandwidth(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		name, both, host string
		size, count      int
		over             report.Over
	}{
		{"send", "--rc -n 200", "10.77.0.1", 65536, 200, over("RC", "send", 1, 128, 1024)},
		{"send, unreliable, asleep", "--uc -n 200 -s 3000 -t 4 --sleep", "fd77::1", 3000, 200, over("UC", "send", 1, 4, 1024)},
		{"send of nothing", "--rc -n 200 -s 0 -t 1", "10.77.0.1", 0, 200, over("RC", "send", 1, 1, 1024)},
		{"write", "--rc --op write -n 200 -s 262144 -m 512", "fd77::1", 1 << 18, 200, over("RC", "write", 1, 128, 512)},
		{"write, unreliable", "--uc --op write -n 200 -s 5000", "10.77.0.1", 5000, 200, over("UC", "write", 1, 128, 1024)},
		{"read", "--rc --op read -n 200", "10.77.0.1", 65536, 200, over("RC", "read", 1, 128, 1024)},
		{"atomic", "--rc --op atomic -n 200", "10.77.0.1", 8, 200, over("RC", "atomic", 1, 128, 1024)},
		{"swap", "--rc --op swap -n 200", "10.77.0.1", 8, 200, over("RC", "swap", 1, 128, 1024)},
		{"send, queue pairs", "--rc -q 5 -n 1000 -s 100", "10.77.0.1", 100, 5000, over("RC", "send", 5, 128, 1024)},
		{"read, queue pairs", "--rc -q 3 -n 100 --op read -s 9000 --sleep", "fd77::1", 9000, 300, over("RC", "read", 3, 128, 1024)},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, text := connectionsBetween(t, hosts, "--bandwidth "+row.both, row.host)
			if r.Over == nil || *r.Over != row.over || len(r.Bandwidth) != 1 {
				t.Fatalf("%v, %d results", r.Over, len(r.Bandwidth))
			}
			b := r.Bandwidth[0]
			sent := cmdtest.Value(t, "sent", b.Sent)
			if b.Size != row.size || sent != uint64(row.count) || cmdtest.Value(t, "sent_per_second", b.SentPerSecond) == 0 || cmdtest.Value(t, "duration_ns", b.Duration) == 0 {
				t.Errorf("%+v", b)
			}
			if b.Packets == nil || b.Packets.Sent == 0 {
				t.Errorf("packets: %+v", b.Packets)
			}
			if row.over.Service == "RC" && (cmdtest.Value(t, "received", b.Received) != sent || cmdtest.Value(t, "lost", b.Lost) != 0 || b.NotMeasured != "") {
				t.Errorf("messages are missing: %+v", b)
			}
			if row.over.Service == "UC" && (b.Received != nil || b.Lost != nil || b.NotMeasured == "") {
				t.Errorf("reported without a measurement: %+v", b)
			}
			cmdtest.CheckSays(t, text, row.over.Operation+" over "+row.over.Service, fmt.Sprintf("path MTU %d", row.over.PathMTU), "not measured")
		})
	}
}

func TestConnectionsLatency(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		both, host string
		size       int
		twice      bool // the server measures too
	}{
		{"--rc", "10.77.0.1", 2, true},
		{"--uc -s 5000 --sleep", "fd77::1", 5000, true},
		{"--rc --op write", "10.77.0.1", 2, true},
		{"--uc --op write -s 2000 -t 1", "10.77.0.1", 2000, true},
		{"--rc --op read -s 3000", "fd77::1", 3000, false},
		{"--rc --op atomic --sleep", "10.77.0.1", 8, false},
	} {
		t.Run(row.both, func(t *testing.T) {
			r, text := connectionsBetween(t, hosts, "--latency -n 300 "+row.both, row.host)
			if len(r.Latency) != 1 || len(r.Bandwidth) != 0 {
				t.Fatalf("%d results", len(r.Latency))
			}
			checkLatency(t, r.Latency[0], row.size, 299)
			if says := strings.Contains(text, "full round trip in microseconds") && strings.Contains(text, "The first round trip, which warms caches, is not counted."); says != row.twice {
				t.Errorf("the server wrote %q", text)
			}
		})
	}
}

// TestConnectionsDiffer: if flags differ, both sides end and at least one reports the cause.
func TestConnectionsDiffer(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct{ server, client, want string }{
		{"--rc --bandwidth -n 50", "--rc --bandwidth -n 60", "); check that the peer (roced perf --rc, or ib_send_bw -c RC) uses the same -n, -q and --op"},
		{"--rc --bandwidth -n 50", "--rc --bandwidth -n 40", "the peer uses --count 40, this side --count 50"},
		{"--rc --bandwidth --op write -n 50", "--rc --bandwidth --op write -n 60", "received 60 messages, want 50"},
		{"--rc --latency -n 50 -W 1s", "--rc --latency -n 40 -W 1s", "check that the peer (roced perf --rc, or ib_send_lat -c RC) uses the same -n, -s and -q; the peer uses --count 40, this side --count 50: use the same on both sides"},
		{"--rc --latency --op write -n 50 -W 1s", "--rc --latency --op write -n 40 -W 1s", "check that the peer (roced perf --rc, or ib_write_lat -c RC) uses the same -n, -s and -q"},
	} {
		server, port := cmdtest.StartWaiting(t, connectionArgs(hosts.A, row.server))
		_, _, stderr := cmdtest.Run(t, connectionArgs(hosts.B, row.client+" 10.77.0.1 -p "+port)...)
		code, _ := server.Wait()
		if says := stderr + server.Stderr(); code != cli.ExitFailed || !strings.Contains(says, row.want) {
			t.Errorf("%s: exit code %d, want an error with %q: %s", row.client, code, row.want, says)
		}
	}
}

// TestPathMTUOfTheInterface: a --mtu above the interface's is rejected before the peer is contacted.
func TestPathMTUOfTheInterface(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, host := range []string{"", "10.77.0.2"} {
		cmdtest.CheckFailure(t, connectionArgs(hosts.A, "--rc --bandwidth -m 4096 "+host), cli.ExitFailed,
			"--mtu 4096 exceeds the RDMA MTU of eth0, which is 1024 because the MTU of the interface is 1500", "ip link set dev eth0 mtu 4200")
	}
}

// TestUnreliableConnectionsMayLose: the server reports missing messages and succeeds, as the client does.
func TestUnreliableConnectionsMayLose(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	args := func(rest string) []string {
		return strings.Fields("perf --uc --bandwidth -s 64 --socket=" + socket + " " + rest)
	}
	for _, row := range []struct {
		server, client string
		code           int
		want           string
	}{
		{"-n 60", "-n 50", 0, "received 50 messages, want 60"},
		{"-n 40", "-n 50", cli.ExitFailed, "received 50 messages, want 40"},
	} {
		server, port := cmdtest.StartWaiting(t, args("-d left "+row.server))
		if code, _, stderr := cmdtest.Run(t, args("-d right -p "+port+" 127.0.0.1 "+row.client)...); code != 0 {
			t.Errorf("client: exit code %d: %s", code, stderr)
		}
		if code, _ := server.Wait(); code != row.code || !strings.Contains(server.Stderr(), row.want) {
			t.Errorf("%s: exit code %d, want %d and %q: %s", row.server, code, row.code, row.want, server.Stderr())
		}
	}
}

// TestCongestionIsReported: both sides report congestion of a slow link whose queue marks packets.
func TestCongestionIsReported(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeImpaired(t, memnet.Impairment{Rate: 20e6, Mark: 100 * time.Microsecond}, hca.WithCongestion(hca.CongestionMark))
	args := func(rest string) []string {
		return strings.Fields("perf --rc --bandwidth --op write -n 3 -s 100000 --socket=" + socket + " " + rest)
	}
	server, port := cmdtest.StartWaiting(t, args("-d left"))
	r := measured(t, args("-d right -p "+port+" 127.0.0.1"))
	code, text := server.Wait()
	if len(r.Bandwidth) != 1 || code != 0 {
		t.Fatalf("%d results, and the server's exit code is %d: %s", len(r.Bandwidth), code, server.Stderr())
	}
	if p := cmdtest.Value(t, "packets", r.Bandwidth[0].Packets); p.CNPHandled == 0 {
		t.Errorf("%+v", p)
	}
	cmdtest.CheckSays(t, text, "packets received with a congestion mark (ECN)")
}

func over(service, operation string, pairs, depth, mtu int) report.Over {
	return report.Over{Service: service, Operation: operation, Pairs: pairs, Depth: depth, PathMTU: mtu}
}
