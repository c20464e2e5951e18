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

// bandwidthResult is of one size. Rates are of payload, without headers; 0 is unknown.
type bandwidthResult struct {
	Size             int               `json:"size"` // bytes
	Duration         time.Duration     `json:"duration_ns"`
	Sent             uint64            `json:"sent"`
	Received         uint64            `json:"received"`
	Lost             uint64            `json:"lost"`
	SentPerSecond    uint64            `json:"sent_per_second"`
	ReceivedPerSec   uint64            `json:"received_per_second"`
	ReceivedBytesSec uint64            `json:"received_bytes_per_second"`
	Drops            map[string]uint64 `json:"drops"`       // by side, place and name
	Unaccounted      uint64            `json:"unaccounted"` // lost, and in none of Drops
	LinkDrops        map[string]uint64 `json:"link_drops"`  // the interfaces' own counts; may repeat Drops
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

// newBandwidthResult puts together what both sides saw.
func newBandwidthResult(size int, sent uint64, elapsed time.Duration, o outcome) bandwidthResult {
	received := perSecond(o.Received, o.Elapsed)
	return bandwidthResult{
		Size: size, Duration: elapsed, Sent: sent, Received: o.Received, Lost: sent - min(sent, o.Received),
		SentPerSecond: perSecond(sent, elapsed), ReceivedPerSec: received, ReceivedBytesSec: received * uint64(size),
	}
}

// addDrops says where the lost packets were lost, as far as either side knows.
func (b *bandwidthResult) addDrops(client, server map[string]uint64) {
	b.Drops = bySide(client, server)
	b.Unaccounted = b.Lost - min(b.Lost, sum(b.Drops))
}

func bySide(client, server map[string]uint64) map[string]uint64 {
	both := map[string]uint64{}
	for name, packets := range client {
		both["client "+name] = packets
	}
	for name, packets := range server {
		both["server "+name] = packets
	}
	return both
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

func (r *report) writeBandwidth(out io.Writer) error {
	fmt.Fprintf(out, "\nBandwidth, client to server, %s (MB: 10^6 bytes of payload)\n\n", r.manner())
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "BYTES\tSENT\tSENT/s\tRECEIVED\tRECEIVED/s\tMB/s\tLOST\tLOST %\t")
	for _, b := range r.Bandwidth {
		percent := 100 * float64(b.Lost) / float64(max(b.Sent, 1))
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t\n", b.Size, grouped(b.Sent), known(b.SentPerSecond, grouped(b.SentPerSecond)), grouped(b.Received),
			known(b.ReceivedPerSec, grouped(b.ReceivedPerSec)), known(b.ReceivedPerSec, megabytes(float64(b.ReceivedBytesSec))), grouped(b.Lost), percent)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return r.writeDrops(out)
}

// known is the text of a rate, or of what follows from it, unless there is none: perftest
// does not tell what it measured.
func known(perSecond uint64, text string) string {
	if perSecond == 0 {
		return "-"
	}
	return text
}

// writeDrops says where the lost packets were lost.
func (r *report) writeDrops(w io.Writer) error {
	for _, b := range r.Bandwidth {
		if b.Lost == 0 {
			continue
		}
		text := list(b.Drops)
		if b.Unaccounted > 0 {
			text = strings.TrimPrefix(fmt.Sprintf("%s, elsewhere %s (the interfaces count: %s)", text, grouped(b.Unaccounted), list(b.LinkDrops)), ", ")
		}
		if _, err := fmt.Fprintf(w, "lost of %d bytes: %s\n", b.Size, text); err != nil {
			return err
		}
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
