// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"encoding/json"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/perf/report"
	"github.com/roced/roced/internal/lab/labtest"
)

// perfServer is a server in this process, in namespace A of a lab.
type perfServer struct {
	*cmdtest.Background
	lab  *labtest.PairLab
	port string
}

func startServer(t *testing.T, hosts *labtest.PairLab, args ...string) *perfServer {
	t.Helper()
	args = append([]string{"perf", "-d", "eth0", "--netns", hosts.A.Path(), "-p", "0"}, args...)
	s := &perfServer{Background: cmdtest.Start(t, args...), lab: hosts}
	_, address, _ := strings.Cut(s.Await(t, "waiting for clients on "), "clients on ")
	address, _, _ = strings.Cut(address, ": ")
	s.port = strconv.Itoa(int(netip.MustParseAddrPort(address).Port()))
	return s
}

// client returns the command line of a client in namespace B.
func (s *perfServer) client(host string, args ...string) []string {
	return append([]string{"perf", "-d", "eth0", "--netns", s.lab.B.Path(), "-p", s.port, host}, args...)
}

func measured(t *testing.T, args []string) (r report.Report) {
	t.Helper()
	code, stdout, stderr := cmdtest.Run(t, append(args, "--json")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	return r
}

func TestPerf(t *testing.T) {
	t.Parallel()
	s := startServer(t, labtest.Pair(t))
	defer s.End(t)
	for _, row := range []struct {
		name, host, client, server string
		args                       []string
		waiting                    string
	}{
		{"spin IPv4", "10.77.0.1", "10.77.0.2", "10.77.0.1", nil, "spin"},
		{"sleep IPv4", "10.77.0.1", "10.77.0.2", "10.77.0.1", []string{"--sleep"}, "sleep"},
		{"spin IPv6", "fd77::1", "fd77::2", "fd77::1", nil, "spin"},
		{"other GID", "10.77.0.1", "fd77::2", "fd77::1", []string{"-g", "1"}, "spin"},
	} {
		t.Run(row.name, func(t *testing.T) {
			args := append([]string{"--sizes", "0,1024", "--duration", "50ms", "--count", "200"}, row.args...)
			r := measured(t, s.client(row.host, args...))
			if r.Client.Address != row.client || r.Server.Address != row.server || r.Waiting != row.waiting {
				t.Errorf("from %s to %s, %s", r.Client.Address, r.Server.Address, r.Waiting)
			}
			if len(r.Bandwidth) != 2 || len(r.Latency) != 2 {
				t.Fatalf("%d and %d results", len(r.Bandwidth), len(r.Latency))
			}
			for i, size := range []int{0, 1024} {
				checkBandwidth(t, r.Bandwidth[i], size)
				checkLatency(t, r.Latency[i], size, 200)
			}
		})
	}
}

// checkBandwidth checks that all lost packets are counted; their number depends on the machine. A slow machine may
// receive all messages at once; then there is no rate.
func checkBandwidth(t *testing.T, b report.BandwidthResult, size int) {
	t.Helper()
	sent, received, lost := cmdtest.Value(t, "sent", b.Sent), cmdtest.Value(t, "received", b.Received), cmdtest.Value(t, "lost", b.Lost)
	unaccounted := cmdtest.Value(t, "unaccounted", b.Unaccounted)
	switch {
	case b.Size != size, sent == 0, received == 0, cmdtest.Value(t, "sent_per_second", b.SentPerSecond) == 0, b.NotMeasured != "":
		t.Errorf("%+v", b)
	case b.ReceivedPerSec != nil && *b.ReceivedPerSec == 0:
		t.Errorf("no receive rate: %+v", b)
	case sent != received+lost, lost != card.Sum(b.Drops)+unaccounted:
		t.Errorf("sent, received and lost do not add up: %+v", b)
	case unaccounted > 0 && len(b.LinkDrops) == 0:
		t.Errorf("uncounted losses: %+v", b)
	}
}

func checkLatency(t *testing.T, l report.LatencyResult, size, trips int) {
	t.Helper()
	if l.Size != size || l.Trips+l.Lost != trips {
		t.Errorf("%+v", l)
	}
	times := []time.Duration{1, l.Min, l.P50, l.P90, l.P99, l.P999, l.Max}
	for i, d := range times[1:] {
		if d < times[i] {
			t.Errorf("times are not in order: %v", times)
		}
	}
}

func TestPerfTable(t *testing.T) {
	t.Parallel()
	s := startServer(t, labtest.Pair(t), "--once")
	code, stdout, stderr := cmdtest.Run(t, s.client("10.77.0.1", "--sizes", "64", "--duration", "20ms", "-n", "50")...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"client: eth0, 10.77.0.2", "server: eth0, 10.77.0.1", "SENT/s", "MB/s", "full round trip in microseconds", "P99.9"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table lacks %q:\n%s", want, stdout)
		}
	}
	if code, _ := s.Wait(); code != 0 {
		t.Errorf("server --once: exit code %d: %s", code, s.Stderr())
	}
}

func TestPerfOneKind(t *testing.T) {
	t.Parallel()
	s := startServer(t, labtest.Pair(t))
	defer s.End(t)
	r := measured(t, s.client("10.77.0.1", "--latency", "--sizes", "64", "-n", "10"))
	if len(r.Bandwidth) != 0 || len(r.Latency) != 1 {
		t.Errorf("--latency: %d and %d results", len(r.Bandwidth), len(r.Latency))
	}
	r = measured(t, s.client("10.77.0.1", "--bandwidth", "--sizes", "64", "--duration", "10ms"))
	if len(r.Bandwidth) != 1 || len(r.Latency) != 0 {
		t.Errorf("--bandwidth: %d and %d results", len(r.Bandwidth), len(r.Latency))
	}
}

func (s *perfServer) dial(t *testing.T, hosts *labtest.PairLab) net.Conn {
	t.Helper()
	conn, err := cmdtest.Dial(hosts.B.Path(), "10.77.0.1:"+s.port)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
