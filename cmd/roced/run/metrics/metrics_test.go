// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/cmd/roced/run/device"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server/peer"
)

// used holds the resources of two users, with at least one of each kind.
var used = []peer.User{
	{UID: 1, Used: peer.Limits{Connections: 2, Limits: hca.Limits{PDs: 1, MRs: 2, CQs: 3, QPs: 4, AHs: 5, SRQs: 6, XRCDs: 13, CompChannels: 7, Memberships: 8, Attachments: 9, IDs: 11, EventChannels: 12, Memory: 10}}},
	{UID: 2, Used: peer.Limits{Connections: 1, Limits: hca.Limits{PDs: 100, Memory: 1000}}},
}

// programs is a Programs with the users of used and five rejected connections.
type programs struct{}

func (programs) Users() []peer.User { return used }
func (programs) Refused() uint64    { return 5 }

// TestUsersAreAddedUp: the resources of all users are summed by kind.
func TestUsersAreAddedUp(t *testing.T) {
	want := `
# HELP roced_clients Number of connected programs.
# TYPE roced_clients gauge
roced_clients 3
# HELP roced_memory_bytes Memory of the queues and regions of all programs.
# TYPE roced_memory_bytes gauge
roced_memory_bytes 1010
# HELP roced_objects Objects held by all programs.
# TYPE roced_objects gauge
roced_objects{kind="ah"} 5
roced_objects{kind="attachment"} 9
roced_objects{kind="channel"} 7
roced_objects{kind="cq"} 3
roced_objects{kind="event_channel"} 12
roced_objects{kind="id"} 11
roced_objects{kind="membership"} 8
roced_objects{kind="mr"} 2
roced_objects{kind="pd"} 101
roced_objects{kind="qp"} 4
roced_objects{kind="srq"} 6
roced_objects{kind="xrcd"} 13
# HELP roced_refused_connections_total Connections rejected because their user connects too often.
# TYPE roced_refused_connections_total counter
roced_refused_connections_total 5
# HELP roced_users Number of users with connected programs.
# TYPE roced_users gauge
roced_users 2
`
	err := testutil.GatherAndCompare(registry(t), strings.NewReader(want), "roced_clients", "roced_users", "roced_objects", "roced_memory_bytes", "roced_refused_connections_total")
	if err != nil {
		t.Error(err)
	}
}

// registry returns a registry with a device that has all its counters, and with one without a card.
func registry(t *testing.T) *prometheus.Registry {
	t.Helper()
	a, b, err := hca.OpenPair(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	open := device.NewOpen(config.NewDevice("eth0"), a)
	missing := device.New(config.NewDevice("eth1"), "", slog.New(slog.DiscardHandler), nil)
	return newRegistry(func() []Device { return []Device{open, missing} }, programs{})
}

var metricName = regexp.MustCompile(`\broced_[a-z_]+\b`)

// names returns the names of the package's metrics.
func names() (list []string) {
	for _, m := range all {
		list = append(list, m.name)
	}
	return list
}

// TestLint: names and help texts follow Prometheus' rules.
func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(registry(t), names()...)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestEveryMetricExists: every metric is served, and every counter of the card is part of a metric.
func TestEveryMetricExists(t *testing.T) {
	for _, name := range names() {
		if n, err := testutil.GatherAndCount(registry(t), name); err != nil || n == 0 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	counters := (&hca.Statistics{}).All()
	n, err := testutil.GatherAndCount(registry(t), "roced_packets_total", "roced_dropped_packets_total", "roced_bytes_total", "roced_trains_sent_total")
	if err != nil || n != len(counters) {
		t.Errorf("%d series of %d counters: %v", n, len(counters), err)
	}
}

// TestDocumented: docs/METRICS.md lists exactly the metrics, with their help and labels.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		labels := "none"
		if m.labels != nil {
			labels = strings.Join(m.labels, ", ")
		}
		if line := fmt.Sprintf("| `%s` | %s | %s |\n", m.name, labels, m.help); !strings.Contains(string(text), line) {
			t.Errorf("docs/METRICS.md does not have the line\n%s", line)
		}
	}
	for _, name := range metricName.FindAllString(string(text), -1) {
		if !slices.Contains(names(), name) {
			t.Errorf("docs/METRICS.md lists unknown metric %s", name)
		}
	}
}

// TestDashboard: the dashboard is JSON and shows all existing metrics except the build, and no others.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Error("the dashboard is not JSON")
	}
	shown := metricName.FindAllString(string(text), -1)
	for _, name := range shown {
		if !slices.Contains(names(), name) {
			t.Errorf("the dashboard shows unknown metric %s", name)
		}
	}
	for _, name := range names() {
		if !slices.Contains(shown, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
