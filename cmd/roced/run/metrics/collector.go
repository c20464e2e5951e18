// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/roced/roced/cmd/roced/run/device"
	"github.com/roced/roced/internal/release"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server/peer"
)

// Device is a source of device metrics.
type Device interface {
	Name() string
	State() device.State
	Opens() uint64 // number of cards opened for it
	Counters() ([]hca.Counter, error)
}

// Programs is a source of program metrics, such as *server.Server.
type Programs interface {
	Users() []peer.User
	Refused() uint64 // number of rejected connections
}

// collector reads all values at each scrape and stores none.
type collector struct {
	devices  func() []Device
	programs Programs
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range all {
		descriptions <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge(out, buildInfo, 1, release.Version())
	collectUsers(out, c.programs.Users())
	count(out, refused, c.programs.Refused())
	for _, d := range c.devices() {
		state := d.State()
		gauge(out, deviceOpen, truth(state.Open), d.Name())
		gauge(out, deviceActive, truth(state.Active), d.Name())
		count(out, deviceOpens, d.Opens(), d.Name())
		list, err := d.Counters()
		if err != nil {
			continue // roced_device_open reports this
		}
		for _, one := range list {
			collectCounter(out, d.Name(), one)
		}
	}
}

// collectUsers sums the resources of all users. Users are not a label, because there may be many.
func collectUsers(out chan<- prometheus.Metric, list []peer.User) {
	var sum peer.Limits
	kinds := []struct {
		name string
		of   func(*peer.Limits) *int
	}{
		{"pd", func(l *peer.Limits) *int { return &l.PDs }},
		{"mr", func(l *peer.Limits) *int { return &l.MRs }},
		{"cq", func(l *peer.Limits) *int { return &l.CQs }},
		{"qp", func(l *peer.Limits) *int { return &l.QPs }},
		{"ah", func(l *peer.Limits) *int { return &l.AHs }},
		{"srq", func(l *peer.Limits) *int { return &l.SRQs }},
		{"xrcd", func(l *peer.Limits) *int { return &l.XRCDs }},
		{"channel", func(l *peer.Limits) *int { return &l.CompChannels }},
		{"membership", func(l *peer.Limits) *int { return &l.Memberships }},
		{"attachment", func(l *peer.Limits) *int { return &l.Attachments }},
		{"id", func(l *peer.Limits) *int { return &l.IDs }},
		{"event_channel", func(l *peer.Limits) *int { return &l.EventChannels }},
	}
	for _, u := range list {
		sum.Connections += u.Used.Connections
		sum.Memory += u.Used.Memory
		for _, k := range kinds {
			*k.of(&sum) += *k.of(&u.Used)
		}
	}
	gauge(out, users, float64(len(list)))
	gauge(out, clients, float64(sum.Connections))
	gauge(out, memory, float64(sum.Memory))
	for _, k := range kinds {
		gauge(out, objects, float64(*k.of(&sum)), k.name)
	}
}

// collectCounter adds a counter to its metric.
func collectCounter(out chan<- prometheus.Metric, device string, c hca.Counter) {
	direction, isBytes := strings.CutSuffix(c.Name, "_bytes")
	switch {
	case isBytes:
		count(out, bytes, c.Value, device, direction)
	case c.Name == "tx_trains":
		count(out, trains, c.Value, device)
	case c.Lost:
		count(out, dropped, c.Value, device, c.Place, c.Name)
	default:
		count(out, packets, c.Value, device, c.Place, c.Name)
	}
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func count(out chan<- prometheus.Metric, d *prometheus.Desc, value uint64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
