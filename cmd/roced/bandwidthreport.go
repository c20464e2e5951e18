package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// bandwidthResult is of one size. Rates are of payload, without headers. What was not
// measured is nil: null in JSON, a dash in the table.
type bandwidthResult struct {
	Size             int               `json:"size"` // bytes
	Duration         *time.Duration    `json:"duration_ns"`
	Sent             *uint64           `json:"sent"`
	Received         *uint64           `json:"received"`
	Lost             *uint64           `json:"lost"`
	SentPerSecond    *uint64           `json:"sent_per_second"`
	ReceivedPerSec   *uint64           `json:"received_per_second"`
	ReceivedBytesSec *uint64           `json:"received_bytes_per_second"`
	Drops            map[string]uint64 `json:"drops"`       // by side, place and name
	Unaccounted      *uint64           `json:"unaccounted"` // lost, and in none of Drops
	LinkDrops        map[string]uint64 `json:"link_drops"`  // the interfaces' own counts; may repeat Drops

	NotMeasured string `json:"not_measured,omitempty"` // why something is nil
}

// newBandwidthResult puts together what both sides saw.
func newBandwidthResult(size int, sent uint64, elapsed time.Duration, o outcome) bandwidthResult {
	b := bandwidthResult{Size: size}
	b.addSent(sent, elapsed)
	b.addReceived(o)
	b.Lost = new(sent - min(sent, o.Received))
	return b
}

func (b *bandwidthResult) addSent(sent uint64, elapsed time.Duration) {
	b.Sent, b.Duration, b.SentPerSecond = &sent, &elapsed, rate(sent, elapsed)
}

func (b *bandwidthResult) addReceived(o outcome) {
	b.Received, b.ReceivedPerSec = &o.Received, rate(o.Received, o.Elapsed)
	if b.ReceivedPerSec != nil {
		b.ReceivedBytesSec = new(*b.ReceivedPerSec * uint64(b.Size))
	}
}

// rate is unknown where no time has passed: of one message.
func rate(n uint64, elapsed time.Duration) *uint64 {
	if elapsed <= 0 {
		return nil
	}
	return new(perSecond(n, elapsed))
}

// addDrops says where the lost packets were lost, as far as either side knows.
func (b *bandwidthResult) addDrops(client, server map[string]uint64) {
	b.Drops = bySide(client, server)
	if b.Lost != nil {
		b.Unaccounted = new(*b.Lost - min(*b.Lost, sum(b.Drops)))
	}
}

// bySide is nil if neither side's are known.
func bySide(client, server map[string]uint64) map[string]uint64 {
	if client == nil && server == nil {
		return nil
	}
	both := map[string]uint64{}
	for name, packets := range client {
		both["client "+name] = packets
	}
	for name, packets := range server {
		both["server "+name] = packets
	}
	return both
}

func (r *report) writeBandwidth(out io.Writer) error {
	fmt.Fprintf(out, "\nBandwidth, client to server, %s (MB: 10^6 bytes of payload)\n\n", r.manner())
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "BYTES\tSENT\tSENT/s\tRECEIVED\tRECEIVED/s\tMB/s\tLOST\tLOST %\t")
	for i := range r.Bandwidth {
		b := &r.Bandwidth[i]
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", b.Size, known(b.Sent, grouped), known(b.SentPerSecond, grouped), known(b.Received, grouped),
			known(b.ReceivedPerSec, grouped), known(b.ReceivedBytesSec, megabytesOf), known(b.Lost, grouped), known(b.Lost, b.percentOfSent))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return r.writeNotes(out)
}

// known is the text of a number, if it was measured.
func known(n *uint64, text func(uint64) string) string {
	if n == nil {
		return dash
	}
	return text(*n)
}

func megabytesOf(bytes uint64) string { return megabytes(float64(bytes)) }

func (b *bandwidthResult) percentOfSent(lost uint64) string {
	return fmt.Sprintf("%.2f", 100*float64(lost)/float64(max(*b.Sent, 1)))
}

// writeNotes says where the lost packets were lost, and what was not measured.
func (r *report) writeNotes(w io.Writer) error {
	for i := range r.Bandwidth {
		b := &r.Bandwidth[i]
		for _, note := range []string{b.losses(), b.NotMeasured} {
			if note == "" {
				continue
			}
			if _, err := fmt.Fprintf(w, "%d bytes: %s\n", b.Size, note); err != nil {
				return err
			}
		}
	}
	return nil
}

// losses is empty if nothing was lost, as far as is known.
func (b *bandwidthResult) losses() string {
	if b.Lost != nil && *b.Lost == 0 {
		return ""
	}
	var parts []string
	if len(b.Drops) > 0 {
		parts = append(parts, list(b.Drops))
	}
	if b.Unaccounted != nil && *b.Unaccounted > 0 {
		elsewhere := "elsewhere " + grouped(*b.Unaccounted)
		if len(b.LinkDrops) > 0 {
			elsewhere += fmt.Sprintf(" (the interfaces count: %s)", list(b.LinkDrops))
		}
		parts = append(parts, elsewhere)
	}
	if len(parts) == 0 {
		return ""
	}
	return "lost: " + strings.Join(parts, ", ")
}
