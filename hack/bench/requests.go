// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/roced/roced/hack/bench/harness"
)

// Requests and responses of programs that sleep while they wait: a key-value server with one goroutine and one
// endpoint, and clients in one process with one endpoint each. Both are written as a new user would write them, with
// package net (requestsudp.go) and with package ud (requestsud.go).

// load describes the requests to a server: from a number of clients without a pause, or from one client at a rate per
// second.
type load struct {
	clients, rate int
}

var loads = []load{{clients: 1}, {clients: 8}, {clients: 64}, {1, 500}, {1, 20000}}

func (l load) String() string {
	switch {
	case l.rate > 0:
		return fmt.Sprintf("%d a second", l.rate)
	case l.clients == 1:
		return "1 client"
	}
	return fmt.Sprintf("%d clients", l.clients)
}

// requests measures each load.
func (b *bench) requests() error {
	for _, l := range loads {
		if err := b.requestTurns("requests", 64, l, []string{"udp", "worker"}); err != nil {
			return err
		}
	}
	return nil
}

// requestTurns measures all variants with a load, in several rounds.
func (b *bench) requestTurns(part string, size int, l load, variants []string) error {
	all := map[string][]round{}
	for range b.Rounds {
		for _, variant := range variants {
			one, err := b.measureRequests(harness.Job{Variant: part + " " + variant, Size: size, Clients: l.clients, Rate: l.rate})
			if err != nil {
				return fmt.Errorf("%s, %s: %w", variant, l, err)
			}
			fmt.Fprintf(os.Stderr, "%s, %s, %d bytes, %s: %s\n", part, l, size, variant, one)
			all[variant] = append(all[variant], one)
		}
	}
	for _, variant := range variants {
		b.Add(summary(part, variant, size, l, all[variant]))
	}
	return nil
}

// round is one measurement.
type round struct {
	perSecond float64
	p50, p99  int64   // ns
	used      int64   // processor time of server and clients per request in ns
	busy      int64   // processor time of the whole machine per request in ns
	switches  float64 // context switches of the whole machine per request
}

func (r round) String() string {
	return fmt.Sprintf("%.1f k/s, median %.1f µs, p99 %.1f µs, processor time per request %.1f µs, of the machine %.1f µs, context switches %.2f",
		r.perSecond/1e3, float64(r.p50)/1e3, float64(r.p99)/1e3, float64(r.used)/1e3, float64(r.busy)/1e3, r.switches)
}

func (b *bench) measureRequests(j harness.Job) (round, error) {
	server, clients := j, j
	server.Role, clients.Role = "serve", "request"
	sent, served, err := b.pair(server, clients)
	if err != nil {
		return round{}, err
	}
	slices.Sort(sent.RoundTrips)
	count := int64(max(sent.Messages, 1))
	return round{
		perSecond: sent.PerSecond, p50: harness.Percentile(sent.RoundTrips, 50), p99: harness.Percentile(sent.RoundTrips, 99),
		used: (sent.Used + served.Used).Nanoseconds() / count, busy: sent.Busy.Nanoseconds() / count,
		switches: float64(sent.Switches) / float64(count),
	}, nil
}

// summary returns the median of each figure, and the median latency of each round, whose spread shows whether the
// results have several modes.
func summary(part, variant string, size int, l load, rounds []round) harness.Record {
	medianOf := func(figure func(round) float64) float64 {
		var all []float64
		for _, r := range rounds {
			all = append(all, figure(r))
		}
		return harness.Median(all)
	}
	r := harness.Record{
		Name: part, Variant: variant, Size: size, Setting: l.String(), Clients: l.clients, Rate: l.rate,
		PerSecond:  medianOf(func(r round) float64 { return r.perSecond }),
		P50:        int64(medianOf(func(r round) float64 { return float64(r.p50) })),
		P99:        int64(medianOf(func(r round) float64 { return float64(r.p99) })),
		CPURequest: int64(medianOf(func(r round) float64 { return float64(r.used) })),
		Busy:       int64(medianOf(func(r round) float64 { return float64(r.busy) })),
		Switches:   medianOf(func(r round) float64 { return r.switches }),
	}
	for _, one := range rounds {
		r.Medians = append(r.Medians, one.p50)
	}
	return r
}

// store contains the server's values by key.
type store map[uint64][]byte

func newStore(size int) store {
	s := store{}
	for key := range uint64(1000) {
		s[key] = make([]byte, size-16)
	}
	return s
}

// answer returns the response (number, key, value) to a request (number, key), in the request's memory.
func (s store) answer(message []byte) []byte {
	key := order.Uint64(message[8:16])
	return append(message[:16], s[key]...)
}

// meterProcessor returns a function that records the processor time of this process and of the machine since the call.
func meterProcessor() func(r *harness.Result) {
	used, busy, switches := processorTime(), machineTime(), contextSwitches()
	return func(r *harness.Result) {
		r.Used, r.Busy, r.Switches = processorTime()-used, machineTime()-busy, contextSwitches()-switches
	}
}

// paceOf returns the time between the starts of two requests, or 0 for no pause.
func paceOf(rate int) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Second / time.Duration(rate)
}
