// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs/hca"
)

// settings contains the kernel settings: the defaults, and those of the design's section on tuning.
var settings = []struct {
	name   string
	tuning hca.Tuning
}{
	{"shipped", hca.Tuning{}},
	{"deferral", hca.Tuning{DeferHardIRQs: 2, GROFlushTimeout: 200 * time.Microsecond}},
	{"deferral+busypoll", hca.Tuning{DeferHardIRQs: 2, GROFlushTimeout: 200 * time.Microsecond, BusyPoll: 20 * time.Microsecond, BusyPollBudget: 64}},
}

var payloads = []int{64, 256, 1024}

// pair runs a receiving job on one host and a sending job on the other, until the sender has finished.
func (b *bench) pair(receiver, sender harness.Job) (sent, received harness.Result, err error) {
	chooseNetwork(&receiver)
	chooseNetwork(&sender)
	receiver.Namespace, receiver.Own, receiver.Peer = b.b.Path(), b.right, b.left
	receiver.Socket, sender.Socket = b.socketsFor(receiver.Variant)
	r, err := harness.Start(receiver)
	if err != nil {
		return sent, received, err
	}
	peer := b.right
	peer.QPN, peer.QPNs = r.Ready.QPN, r.Ready.QPNs
	sender.Namespace, sender.Own, sender.Peer, sender.Duration = b.a.Path(), b.left, peer, b.Duration
	s, err := harness.Start(sender)
	if err != nil {
		_, _ = r.Finish(true)
		return sent, received, err
	}
	if sent, err = s.Finish(false); err != nil {
		_, _ = r.Finish(true)
		return sent, received, err
	}
	received, err = r.Finish(true)
	return sent, received, err
}

// overUDP is the suffix of variants whose cards use UDP sockets.
const overUDP = " over UDP"

// chooseNetwork sets the network of a job from the suffix of its variant, and removes the suffix.
func chooseNetwork(j *harness.Job) {
	if plain, cut := strings.CutSuffix(j.Variant, overUDP); cut {
		j.Variant, j.Network = plain, hca.NetworkUDP
	}
}

// oneWay measures throughput in one direction. Raw AF_XDP and roced each have the settings that are fastest for them.
func (b *bench) oneWay() error {
	for _, size := range payloads {
		tuning, err := b.bestTunings(size)
		if err != nil {
			return err
		}
		err = b.InTurns("oneway", size, "its best", []string{"udp", "udp gso", "udp gso cut", "raw", "inline", "worker", "inline" + overUDP}, func(variant string) (float64, error) {
			return b.oneWayRate(harness.Job{Variant: variant, Size: size, Tuning: tuning[variant]})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) oneWayRate(j harness.Job) (float64, error) {
	receiver, sender := j, j
	receiver.Role, sender.Role = "receive", "send"
	_, received, err := b.pair(receiver, sender)
	return received.PerSecond, err
}

// bestTunings finds the settings with which raw AF_XDP and roced are fastest. UDP has no settings.
func (b *bench) bestTunings(size int) (best map[string]hca.Tuning, err error) {
	variants := []string{"raw", "inline"}
	best, fastest := map[string]hca.Tuning{}, map[string]float64{}
	for _, setting := range settings {
		rates := map[string][]float64{}
		for range max(b.Rounds/2, 2) {
			for _, variant := range variants {
				rate, err := b.oneWayRate(harness.Job{Variant: variant, Size: size, Tuning: setting.tuning})
				if err != nil {
					return nil, fmt.Errorf("%s, %d bytes, %s: %w", variant, size, setting.name, err)
				}
				rates[variant] = append(rates[variant], rate)
			}
		}
		for _, variant := range variants {
			rate := harness.Median(rates[variant])
			b.Add(harness.Record{Name: "settings", Variant: variant, Size: size, Setting: setting.name, PerSecond: rate})
			if rate > fastest[variant] {
				best[variant], fastest[variant] = setting.tuning, rate
			}
		}
	}
	best["worker"] = best["inline"]
	return best, nil
}

// roundTrips measures round trips of 64 bytes with spinning and with sleeping programs.
func (b *bench) roundTrips() error {
	return b.trip([]tripKind{
		{"roundtrip spinning", false, []string{"udp", "inline", "inline" + overUDP}},
		{"roundtrip sleeping", true, []string{"udp", "worker", "worker" + overUDP}},
	})
}

// tripKind is a kind of round trip (spinning or sleeping), and the variants that are measured.
type tripKind struct {
	name     string
	sleep    bool
	variants []string
}

func (b *bench) trip(kinds []tripKind) error {
	for _, kind := range kinds {
		trips, busy, switches := map[string][]time.Duration{}, map[string]time.Duration{}, map[string]uint64{}
		for range b.Rounds {
			for _, variant := range kind.variants {
				j := harness.Job{Variant: variant, Size: 64, Sleep: kind.sleep, Count: b.Trips / b.Rounds}
				receiver, sender := j, j
				receiver.Role, sender.Role = "pong", "ping"
				r, _, err := b.pair(receiver, sender)
				if err != nil {
					return err
				}
				trips[variant] = append(trips[variant], r.RoundTrips...)
				busy[variant] += r.Busy
				switches[variant] += r.Switches
				fmt.Fprint(os.Stderr, ".")
			}
		}
		for _, variant := range kind.variants {
			all := trips[variant]
			slices.Sort(all)
			count := max(len(all), 1)
			b.Add(harness.Record{
				Name: kind.name, Variant: variant, Size: 64, P50: harness.Percentile(all, 50), P90: harness.Percentile(all, 90), P99: harness.Percentile(all, 99), P999: harness.Percentile(all, 99.9),
				Busy: busy[variant].Nanoseconds() / int64(count), Switches: float64(switches[variant]) / float64(count),
			})
		}
	}
	return nil
}

// shortWay compares package ud with bare verbs: throughput in one direction, then round trips.
func (b *bench) shortWay() error {
	for _, size := range payloads {
		err := b.InTurns("short way", size, "", []string{"inline", "ud inline", "worker", "ud worker"}, func(variant string) (float64, error) {
			receiver := harness.Job{Role: "receive", Variant: variant, Size: size}
			sender := receiver
			sender.Role = "send"
			_, received, err := b.pair(receiver, sender)
			return received.PerSecond, err
		})
		if err != nil {
			return err
		}
	}
	return b.trip([]tripKind{
		{"short roundtrip spinning", false, []string{"inline", "ud inline"}},
		{"short roundtrip sleeping", true, []string{"worker", "ud worker"}},
	})
}

// idleCost measures an idle device.
func (b *bench) idleCost() error {
	c, err := harness.Start(harness.Job{Role: "idle", Variant: "worker", Namespace: b.a.Path(), Own: b.left, Peer: b.right, Duration: 2 * time.Second})
	if err != nil {
		return err
	}
	r, err := c.Finish(false)
	b.Add(harness.Record{Name: "idle", Variant: "worker", CPU: r.CPU, Resident: r.Resident})
	return err
}
