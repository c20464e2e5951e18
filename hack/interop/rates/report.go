// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/vm"
)

// describeMachines prints the environment of the measurements.
func describeMachines(image string, o options) {
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("two machines, each Linux %s, %d CPU, %d MB, emulated (TCG) on %d processors; load before: %s; %d rounds\n",
		vm.Release(image), o.cpus, guestMemory, runtime.NumCPU(), strings.TrimSpace(string(load)), o.rounds)
}

// describeCard prints roced's XDP and AF_XDP modes of the card.
func (l *testbed) describeCard(ctx context.Context) error {
	r, err := l.perf(ctx, measurement{kind: roundTrip, size: 64}, "auto")
	if err == nil {
		fmt.Printf("roced: XDP %s, AF_XDP %s\n\n", r.Server.XDP, r.Server.AFXDP)
	}
	return err
}

// result contains all figures of a measurement by contender.
type result struct {
	measurement
	figures map[string][]figure
}

// print prints medians and ratios.
func (r result) print() {
	values, lost := map[string]float64{}, map[string]float64{}
	for name, all := range r.figures {
		values[name] = r.median(all)
		lost[name] = median(all, func(f figure) float64 { return f.lost })
	}
	printLine(r.name, r.kind, values, lost)
}

// printBest compares the better of the sleeping and the spinning result of each contender, if both were measured.
func printBest(all []result) {
	fmt.Println("\nthe better of sleeping and spinning:")
	for i, r := range all {
		for _, other := range all[i+1:] {
			if r.kind != other.kind || r.size != other.size || r.op != other.op {
				continue
			}
			best := map[string]float64{}
			for name := range r.figures {
				best[name] = r.kind.better(r.median(r.figures[name]), other.median(other.figures[name]))
			}
			name, _, _ := strings.Cut(r.name, ",")
			printLine(name, r.kind, best, nil)
		}
	}
}

// printLine prints the results of the contenders, and ratios. A ratio above 1 is better, for rates and for round trips.
func printLine(name string, k kind, values, lost map[string]float64) {
	line := fmt.Sprintf("%-26s", name)
	for _, c := range contenders {
		if values[c.name] == 0 {
			continue
		}
		line += fmt.Sprintf("  %s %s", c.name, k.show(values[c.name]))
		if lost[c.name] > 0.005 {
			line += fmt.Sprintf(" (%.0f%% lost)", 100*lost[c.name])
		}
	}
	for _, own := range []string{"roced", "roced-udp"} {
		for _, other := range []string{"rxe", "udp"} {
			if values[other] != 0 {
				line += fmt.Sprintf("  %s/%s %.2f", own, other, k.ratio(values[own], values[other]))
			}
		}
	}
	fmt.Println(line)
}

func (k kind) show(value float64) string {
	if k == roundTrip {
		return fmt.Sprintf("%.0f µs", value/float64(time.Microsecond))
	}
	return fmt.Sprintf("%.0f/s", value)
}

func (k kind) ratio(own, other float64) float64 {
	if k == roundTrip {
		own, other = other, own
	}
	return own / other
}

func (k kind) better(a, b float64) float64 {
	if k == roundTrip {
		return min(a, b)
	}
	return max(a, b)
}

func (m measurement) median(all []figure) float64 {
	return median(all, func(f figure) float64 {
		if m.kind == roundTrip {
			return float64(f.trip)
		}
		return f.perSecond
	})
}

func median(all []figure, of func(figure) float64) float64 {
	var values []float64
	for _, f := range all {
		values = append(values, of(f))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
