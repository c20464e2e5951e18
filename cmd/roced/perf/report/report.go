// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/options"
)

// Report is the output of perf, as a table or as JSON.
type Report struct {
	Client    card.Side         `json:"client"`
	Server    card.Side         `json:"server"`
	Waiting   string            `json:"waiting"`        // spin or sleep
	Over      *Over             `json:"over,omitempty"` // connections; else datagrams
	Bandwidth []BandwidthResult `json:"bandwidth,omitempty"`
	Latency   []LatencyResult   `json:"latency,omitempty"`

	leavesFirst bool // Latency omits the first round trip
}

func NewReport(o *options.Options) Report {
	return Report{Waiting: o.Waiting.String(), leavesFirst: o.Connects() || o.Perftest}
}

// Print prints the results, if there are any.
func (r *Report) Print(o *options.Options) error {
	switch {
	case len(r.Bandwidth)+len(r.Latency) == 0:
		return nil
	case o.JSON:
		return r.writeJSON(o.Out)
	}
	return r.writeTable(o.Out)
}

func (r *Report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *Report) writeTable(w io.Writer) error {
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

func (r *Report) writeLatency(out io.Writer) error {
	fmt.Fprintf(out, "\nLatency, full round trip in microseconds, %s\n\n", r.manner())
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "BYTES\tROUND TRIPS\tLOST\tMIN\tP50\tP90\tP99\tP99.9\tMAX\t")
	for _, l := range r.Latency {
		fmt.Fprintf(w, "%d\t%s\t%d\t", l.Size, cli.Grouped(uint64(l.Trips)), l.Lost)
		for _, d := range []time.Duration{l.Min, l.P50, l.P90, l.P99, l.P999, l.Max} {
			fmt.Fprintf(w, "%.1f\t", float64(d)/1e3)
		}
		fmt.Fprintln(w)
	}
	if r.leavesFirst {
		fmt.Fprintln(w, "\nThe first round trip, which warms caches, is not counted. perftest omits one too.")
	}
	return w.Flush()
}

func (r *Report) manner() string {
	manner := "spinning while waiting"
	if r.Waiting == "sleep" {
		manner = "sleeping while waiting"
	}
	if r.Over != nil {
		manner = fmt.Sprintf("%v, %s", r.Over, manner)
	}
	return manner
}
