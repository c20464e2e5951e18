// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/perf/report"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
)

const (
	testGroup4 = "239.1.2.3"
	testGroup6 = "ff0e::1:2:3"
)

func perftestArgs(ns *lab.Namespace, args string) []string {
	return append([]string{"perf", "--perftest", "-d", "eth0", "--netns", ns.Path()}, strings.Fields(args)...)
}

// perftestBetween runs both sides and returns their reports.
func perftestBetween(t *testing.T, hosts *labtest.PairLab, serverArgs, clientArgs string) (client report.Report, serverText string) {
	t.Helper()
	server, port := cmdtest.StartWaiting(t, perftestArgs(hosts.A, serverArgs))
	client = measured(t, perftestArgs(hosts.B, clientArgs+" -p "+port))
	code, serverText := server.Wait()
	if code != 0 {
		t.Fatalf("server: exit code %d: %s", code, server.Stderr())
	}
	return client, serverText
}

func TestPerftestBandwidth(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		name, server, client, from, to string
		size                           int
	}{
		{"IPv4", "-s 64", "10.77.0.1 -s 64", "10.77.0.2", "10.77.0.1", 64},
		{"IPv6", "", "fd77::1", "fd77::2", "fd77::1", 1024},
		{"IPv6, met over IPv4", "--sleep -s 0", "10.77.0.1 -g 1 --sleep -s 0", "fd77::2", "fd77::1", 0},
		{"IPv4 group", "--group " + testGroup4, "10.77.0.1", "10.77.0.2", testGroup4, 1024},
		{"IPv6 group", "--group " + testGroup6, "fd77::1", "fd77::2", testGroup6, 1024},
		{"slowly", "", "10.77.0.1 --rate 10000", "10.77.0.2", "10.77.0.1", 1024},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, text := perftestBetween(t, hosts, "--bandwidth -n 300 "+row.server, "--bandwidth -n 300 "+row.client)
			if r.Client.Address != row.from || r.Server.Address != row.to || r.Server.Device != "perftest 6.06" || r.Server.MTU != 1024 {
				t.Errorf("from %v to %v", r.Client, r.Server)
			}
			if len(r.Bandwidth) != 1 {
				t.Fatalf("%d results", len(r.Bandwidth))
			}
			b := r.Bandwidth[0]
			if b.Size != row.size || cmdtest.Value(t, "sent", b.Sent) != 300 || cmdtest.Value(t, "sent_in_trains", b.InTrains) > 300 ||
				cmdtest.Value(t, "sent_per_second", b.SentPerSecond) == 0 || cmdtest.Value(t, "duration_ns", b.Duration) == 0 {
				t.Errorf("%+v", b)
			}
			if b.Received != nil || b.ReceivedPerSec != nil || b.ReceivedBytesSec != nil || b.Lost != nil || b.Unaccounted != nil || b.NotMeasured == "" {
				t.Errorf("reported without a measurement: %+v", b)
			}
			cmdtest.CheckSays(t, text, "client: perftest 6.06, "+row.from+", RDMA MTU 1024\n", "server: eth0, "+row.to+", RDMA MTU 1024, XDP ", "not measured: messages sent, and therefore messages lost")
			cmdtest.CheckSays(t, strings.Join(strings.Fields(text), " "), fmt.Sprintf("%d - - - 300", row.size))
		})
	}
}

func TestPerftestLatency(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		name, server, client string
		size                 int
	}{
		{"IPv4", "", "10.77.0.1", 2},
		{"IPv6", "-s 100", "fd77::1 -s 100", 100},
		{"groups", "--group 239.1.2.3", "10.77.0.1 --group 239.1.2.4 --sleep", 2},
		{"IPv6 groups", "--group ff0e::3", "fd77::1 --group ff0e::4", 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, text := perftestBetween(t, hosts, "--latency -n 50 "+row.server, "--latency -n 50 "+row.client)
			if len(r.Latency) != 1 {
				t.Fatalf("%d results", len(r.Latency))
			}
			checkLatency(t, r.Latency[0], row.size, 49)
			cmdtest.CheckSays(t, text, "full round trip in microseconds")
		})
	}
}

// TestPerftestJSONServer: with --json, standard output contains only the report.
func TestPerftestJSONServer(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	taken, port := cmdtest.StartWaiting(t, perftestArgs(hosts.A, "--latency")) // a free port, since the flag needs one
	taken.Stop()
	taken.Wait()
	server := cmdtest.Start(t, perftestArgs(hosts.A, "--bandwidth --json -n 5 -p "+port)...)
	var client int
	for client = cli.ExitFailed; client != 0; { // until the server listens
		client, _, _ = cmdtest.Run(t, perftestArgs(hosts.B, "--bandwidth -n 5 10.77.0.1 -p "+port)...)
		if server.HasEnded() {
			break
		}
	}
	code, text := server.Wait()
	var r report.Report
	if err := json.Unmarshal([]byte(text), &r); code != 0 || err != nil || len(r.Bandwidth) != 1 || cmdtest.Value(t, "received", r.Bandwidth[0].Received) != 5 || r.Bandwidth[0].Sent != nil {
		t.Errorf("exit code %d: %v in %q: %s", code, err, text, server.Stderr())
	}
}

// TestPerftestCountsDiffer: the error for missing or additional messages suggests that the counts differ.
func TestPerftestCountsDiffer(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct{ kind, server, client, want string }{
		// Only the server's error is checked. The client may still wait for a response; the test stops it.
		{"--bandwidth", "-n 50", "-n 40", "received 40 messages, want 50 (dropped here: none (check the counters of the peer)); check that ib_send_bw -c UD uses the same -n, and not -D"},
		{"--bandwidth", "-n 50", "-n 60", "the peer uses --count 60, this side --count 50"},
		{"--bandwidth", "-n 50 -s 8", "-n 50 -s 7", "--sizes 8: use the same --sizes on both sides"},
		{"--latency --sleep", "-n 50 -W 3s", "-n 40", "sent 40 messages and received 40 of 50 each way; no further message received in 3s"},
		{"--latency", "-n 50 -s 8", "-n 50 -s 7", "--sizes 8: use the same --sizes on both sides"},
	} {
		server, port := cmdtest.StartWaiting(t, perftestArgs(hosts.A, row.kind+" "+row.server))
		client := cmdtest.Start(t, perftestArgs(hosts.B, row.kind+" "+row.client+" 10.77.0.1 -p "+port)...)
		code, _ := server.Wait()
		client.Stop()
		client.Wait()
		if code != cli.ExitFailed || !strings.Contains(server.Stderr(), row.want) {
			t.Errorf("%s: exit code %d, want an error with %q: %s", row.client, code, row.want, server.Stderr())
		}
	}
}
