// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"text/tabwriter"
)

// variantNames contains the names of the variants in the table.
var variantNames = map[string]string{
	"udp": "(a) kernel UDP", "udp gso": "(a) kernel UDP, trains", "udp gso cut": "(a) kernel UDP, trains that are cut",
	"raw": "(b) raw AF_XDP", "inline": "(c) roced inline", "worker": "(d) roced worker",
}

// Report prints the table.
func (b *Measurements) Report() error {
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
	return w.Flush()
}

func (r *Record) figure() string {
	switch {
	case r.Name == "requests":
		return r.requestFigures()
	case r.Switches != 0:
		return fmt.Sprintf("%s; %.1f context switches and %.1f µs of processor time per round trip", r.percentiles(), r.Switches, float64(r.Busy)/1e3)
	case r.P50 != 0:
		return r.percentiles()
	case r.Wakes != 0:
		return fmt.Sprintf("%.0f messages/s, %.0f wakes/s, %.0f %% of a processor", r.PerSecond, r.Wakes, 100*r.CPU)
	case r.Seconds != 0:
		return fmt.Sprintf("%.3f s", r.Seconds)
	case r.Sent != 0:
		return fmt.Sprintf("%d of %d lost", r.Lost, r.Sent)
	case r.Resident != 0:
		return fmt.Sprintf("%.3f %% of a processor, %d MiB resident", 100*r.CPU, r.Resident>>20)
	}
	return fmt.Sprintf("%.3f M/s", r.PerSecond/1e6)
}

func (r *Record) percentiles() string {
	return fmt.Sprintf("p50 %.1f µs, p90 %.1f µs, p99 %.1f µs, p99.9 %.1f µs", float64(r.P50)/1e3, float64(r.P90)/1e3, float64(r.P99)/1e3, float64(r.P999)/1e3)
}

// ratios compares a record with the earlier records of its case.
func (b *Measurements) ratios(i int) (text string) {
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
		case len(r.Rates) > 0 && len(r.Rates) == len(other.Rates):
			text += fmt.Sprintf("%.2f × %s, round by round  ", RoundByRound(r.Rates, other.Rates), other.Variant)
		case r.PerSecond != 0:
			text += fmt.Sprintf("%.2f × %s  ", r.PerSecond/other.PerSecond, other.Variant)
		}
	}
	return text
}

// RoundByRound returns the median of the ratios of each round: measurements within a second or two are more comparable
// than medians of all rounds.
func RoundByRound(rates, others []float64) float64 {
	var all []float64
	for i := range rates {
		all = append(all, rates[i]/others[i])
	}
	return Median(all)
}

// requestFigures returns the figures of a record of requests.
func (r *Record) requestFigures() string {
	return fmt.Sprintf("%.1f k/s, median %.1f µs, p99 %.1f µs, processor %.1f µs, machine %.1f µs",
		r.PerSecond/1e3, float64(r.P50)/1e3, float64(r.P99)/1e3, float64(r.CPURequest)/1e3, float64(r.Busy)/1e3)
}

// requestRatios compares two records of the same load: rate, median latency, and processor time of both programs and of
// the machine.
func requestRatios(r, other *Record) string {
	return fmt.Sprintf("rate %.2f, median %.2f, processor %.2f, machine %.2f × %s  ", r.PerSecond/other.PerSecond,
		ratio(r.P50, other.P50), ratio(r.CPURequest, other.CPURequest), ratio(r.Busy, other.Busy), other.Variant)
}

func ratio(a, b int64) float64 { return float64(a) / float64(b) }
