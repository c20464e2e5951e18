// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Programs that sleep while they wait: a server, and its clients.

var (
	sleepers = []struct {
		contender
		variant string
	}{{udp, "udp"}, {rocedSleep, "worker"}}
	clients = []int{1, 8, 64}
	paces   = []int{500, 20000} // requests a second, by one client
)

// requests plots the requests of a server and its clients per second, and their processor time.
func requests(f *records) (*figure, error) {
	rate := func(r record) float64 { return r.PerSecond / 1e3 }
	used := func(r record) float64 { return r.CPURequest / 1e3 }
	busy := func(r record) float64 { return r.Busy / 1e3 }
	p, err := f.part("requests")
	if err != nil {
		return nil, err
	}
	done := panel{title: "as fast as answers come", x: "clients", y: "thousand requests a second", ticks: names(clients), fromZero: true}
	cost := panel{title: "what a request takes", x: "clients", y: "processor time, µs", ticks: names(clients), fromZero: true}
	for _, c := range sleepers {
		for _, l := range []struct {
			panel  *panel
			aspect string
			dashed bool
			of     func(record) float64
		}{{&done, "", false, rate}, {&cost, "", false, used}, {&cost, "whole machine", true, busy}} {
			drawn := line{contender: c.contender, aspect: l.aspect, dashed: l.dashed}
			for _, count := range clients {
				r, err := p.find(record{Name: "requests", Variant: c.variant, Size: 64, Clients: count})
				if err != nil {
					return nil, err
				}
				drawn.values = append(drawn.values, l.of(r))
			}
			l.panel.lines = append(l.panel.lines, drawn)
		}
	}
	return &figure{title: "A server and clients that sleep while they wait", panels: []panel{done, cost}, source: p.source()}, nil
}

// waiting is how long one client waits for its answers, at a given pace.
func waiting(f *records) (*figure, error) {
	p, err := f.part("requests")
	if err != nil {
		return nil, err
	}
	figure := &figure{title: "How long a client that sleeps waits for an answer", source: p.source(), sameScale: true}
	for _, pace := range paces {
		axes := panel{title: fmt.Sprintf("%d requests a second", pace), x: "per cent of the requests", y: "at most, µs", ticks: []string{"50", "99"}}
		for _, c := range sleepers {
			r, err := p.find(record{Name: "requests", Variant: c.variant, Size: 64, Clients: 1, Rate: pace})
			if err != nil {
				return nil, err
			}
			axes.lines = append(axes.lines, line{contender: c.contender, values: []float64{r.P50 / 1e3, r.P99 / 1e3}})
		}
		figure.panels = append(figure.panels, axes)
	}
	return figure, nil
}
