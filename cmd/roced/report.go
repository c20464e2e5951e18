package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what perf prints, as a table or as JSON.
type report struct {
	Client    side              `json:"client"`
	Server    side              `json:"server"`
	Waiting   string            `json:"waiting"` // spin or sleep
	Bandwidth []bandwidthResult `json:"bandwidth,omitempty"`
	Latency   []latencyResult   `json:"latency,omitempty"`
}

// latencyResult is of one size. Times are of full round trips.
type latencyResult struct {
	Size  int           `json:"size"` // bytes
	Trips int           `json:"round_trips"`
	Lost  int           `json:"lost"`
	Min   time.Duration `json:"min_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p99_9_ns"`
	Max   time.Duration `json:"max_ns"`
}

func newReport(o *perfOptions) report {
	if o.sleep {
		return report{Waiting: waitSleep}
	}
	return report{Waiting: waitSpin}
}

// print prints what was measured, if anything was.
func (r *report) print(o *perfOptions) error {
	switch {
	case len(r.Bandwidth)+len(r.Latency) == 0:
		return nil
	case o.json:
		return r.writeJSON(o.out)
	}
	return r.writeTable(o.out)
}

func newLatencyResult(size, lost int, times []time.Duration) latencyResult {
	slices.Sort(times)
	return latencyResult{
		Size: size, Trips: len(times), Lost: lost, Min: percentile(times, 0), P50: percentile(times, 50),
		P90: percentile(times, 90), P99: percentile(times, 99), P999: percentile(times, 99.9), Max: percentile(times, 100),
	}
}

func (r *report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *report) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "client: %v\nserver: %v\n", r.Client, r.Server)
	if len(r.Bandwidth) > 0 {
		if err := r.writeBandwidth(w); err != nil {
			return err
		}
	}
	if len(r.Latency) > 0 {
		return r.writeLatency(w)
	}
	return nil
}

func list(packets map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(packets)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, grouped(packets[name])))
	}
	return strings.Join(parts, ", ")
}

func (r *report) writeLatency(out io.Writer) error {
	fmt.Fprintf(out, "\nLatency, full round trip in microseconds, %s\n\n", r.manner())
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "BYTES\tROUND TRIPS\tLOST\tMIN\tP50\tP90\tP99\tP99.9\tMAX\t")
	for _, l := range r.Latency {
		fmt.Fprintf(w, "%d\t%s\t%d\t", l.Size, grouped(uint64(l.Trips)), l.Lost)
		for _, d := range []time.Duration{l.Min, l.P50, l.P90, l.P99, l.P999, l.Max} {
			fmt.Fprintf(w, "%.1f\t", float64(d)/1e3)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func (r *report) manner() string {
	if r.Waiting == waitSleep {
		return "sleeping while waiting"
	}
	return "spinning while waiting"
}
