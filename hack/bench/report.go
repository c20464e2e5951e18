package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// record is a line of bench.json: one case.
type record struct {
	Name       string  `json:"name"`
	Variant    string  `json:"variant"`
	Size       int     `json:"size,omitempty"`    // payload, bytes
	Setting    string  `json:"setting,omitempty"` // of the kernel's knobs
	PerSecond  float64 `json:"messages_per_second,omitempty"`
	P50        int64   `json:"p50_ns,omitempty"`
	P99        int64   `json:"p99_ns,omitempty"`
	CPU        float64 `json:"cpu,omitempty"`                    // share of one processor
	Clients    int     `json:"clients,omitempty"`                // of requests
	Rate       int     `json:"rate,omitempty"`                   // of requests, a second; 0 as fast as answers come
	Medians    []int64 `json:"p50_rounds_ns,omitempty"`          // of each round of requests
	CPURequest int64   `json:"cpu_ns_per_request,omitempty"`     // of server and clients
	Busy       int64   `json:"machine_ns_per_request,omitempty"` // of all processors, kernel included
	Seconds    float64 `json:"seconds,omitempty"`                // of all joins
	Resident   uint64  `json:"resident_bytes,omitempty"`         // of the process
	Sent       uint64  `json:"sent,omitempty"`                   // messages
	Lost       uint64  `json:"lost,omitempty"`                   // of them, all of them in counters
}

func (b *bench) add(r record) { b.records = append(b.records, r) }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// percentile of sorted durations, in ns; 0 if there are none.
func percentile(sorted []time.Duration, percent int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Nanoseconds()
}

// variants are the letters that the table's ratios are written with.
var variantNames = map[string]string{
	"udp": "(a) kernel UDP", "udp gso": "(a) kernel UDP, trains", "udp gso cut": "(a) kernel UDP, trains that are cut", "raw": "(b) raw AF_XDP", "inline": "(c) roced inline", "worker": "(d) roced worker",
}

// report prints the table and writes the records.
func (b *bench) report(output string) error {
	fmt.Fprintln(os.Stderr)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CASE\tBYTES\tKNOBS\tVARIANT\tRESULT\tRATIOS")
	for i, r := range b.records {
		variant := variantNames[r.Variant]
		if variant == "" {
			variant = r.Variant
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", r.Name, r.Size, r.Setting, variant, r.figure(), b.ratios(i))
	}
	if err := w.Flush(); err != nil || output == "" {
		return err
	}
	text, err := json.MarshalIndent(b.records, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(output, append(text, '\n'), 0o644)
}

func (r *record) figure() string {
	switch {
	case r.Name == "requests":
		return r.requestFigures()
	case r.P50 != 0:
		return fmt.Sprintf("p50 %.1f µs, p99 %.1f µs", float64(r.P50)/1e3, float64(r.P99)/1e3)
	case r.Seconds != 0:
		return fmt.Sprintf("%.3f s", r.Seconds)
	case r.Sent != 0:
		return fmt.Sprintf("%d of %d lost", r.Lost, r.Sent)
	case r.Resident != 0:
		return fmt.Sprintf("%.3f %% of a processor, %d MiB resident", 100*r.CPU, r.Resident>>20)
	}
	return fmt.Sprintf("%.3f M/s", r.PerSecond/1e6)
}

// ratios compares a record with the others of its case that came before it.
func (b *bench) ratios(i int) (text string) {
	r := b.records[i]
	if r.Name == "settings" {
		return ""
	}
	for _, other := range b.records[:i] {
		same := other.Name == r.Name && other.Size == r.Size && other.Setting == r.Setting
		switch {
		case !same:
		case r.Name == "requests":
			text += requestRatios(&r, &other)
		case r.P50 != 0:
			text += fmt.Sprintf("%.2f × %s  ", float64(r.P50)/float64(other.P50), other.Variant)
		case r.PerSecond != 0:
			text += fmt.Sprintf("%.2f × %s  ", r.PerSecond/other.PerSecond, other.Variant)
		}
	}
	return text
}
