// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
)

func (r *Report) writeBandwidth(out io.Writer) error {
	fmt.Fprintf(out, "\nBandwidth, client to server, %s (MB: 10^6 bytes of payload)\n\n", r.manner())
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "BYTES\tSENT\tSENT/s\tIN TRAINS %\tRECEIVED\tRECEIVED/s\tMB/s\tLOST\tLOST %\t")
	for i := range r.Bandwidth {
		b := &r.Bandwidth[i]
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", b.Size, known(b.Sent, cli.Grouped), known(b.SentPerSecond, cli.Grouped), b.inTrains(), known(b.Received, cli.Grouped),
			known(b.ReceivedPerSec, cli.Grouped), known(b.ReceivedBytesSec, megabytesOf), known(b.Lost, cli.Grouped), known(b.Lost, b.percentOfSent))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return r.writeNotes(out)
}

// known formats a number, or returns a dash if it was not measured.
func known(n *uint64, text func(uint64) string) string {
	if n == nil {
		return cli.Dash
	}
	return text(*n)
}

func megabytesOf(bytes uint64) string { return cli.Megabytes(float64(bytes)) }

func (b *BandwidthResult) percentOfSent(some uint64) string { return percent(some, *b.Sent) }

func percent(some, all uint64) string {
	return fmt.Sprintf("%.2f", 100*float64(some)/float64(max(all, 1)))
}

// writeNotes prints where packets were lost, and which values were not measured.
func (r *Report) writeNotes(w io.Writer) error {
	for i := range r.Bandwidth {
		b := &r.Bandwidth[i]
		for _, note := range []string{b.losses(), b.advice(), b.Packets.again(), b.Packets.congestion(), b.noTrains(), b.NotMeasured} {
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

// inTrains returns the percentage of messages that were sent in trains, if each message is one packet, or else of
// packets. A server does not measure sending, so its packets are not compared with messages.
func (b *BandwidthResult) inTrains() string {
	if b.Packets != nil && b.Duration != nil {
		return percent(b.Packets.InTrains, b.Packets.Sent)
	}
	return known(b.InTrains, b.percentOfSent)
}

// noTrains returns the reason why no packet was sent in a train, or "".
func (b *BandwidthResult) noTrains() string {
	if b.NoTrains == "" {
		return ""
	}
	return "no trains, all packets were sent individually: " + b.NoTrains
}

// advice returns the remedy if messages were sent, none arrived, and no counter explains the loss; otherwise "".
func (b *BandwidthResult) advice() string {
	if b.Sent == nil || b.Received == nil || *b.Sent == 0 || *b.Received > 0 || card.Sum(b.Drops) > 0 {
		return ""
	}
	return "nothing arrived: " + card.Unanswered(b.Size)
}

// losses lists the places where packets were lost; it is empty if no loss is known. If the number of lost messages is
// unknown, packets are listed as dropped: duplicates, for example, are drops without a loss.
func (b *BandwidthResult) losses() string {
	if b.Lost != nil && *b.Lost == 0 {
		return ""
	}
	var parts []string
	if len(b.Drops) > 0 {
		parts = append(parts, cli.List(b.Drops))
	}
	if b.Unaccounted != nil && *b.Unaccounted > 0 {
		elsewhere := "elsewhere " + cli.Grouped(*b.Unaccounted)
		if len(b.LinkDrops) > 0 {
			elsewhere += fmt.Sprintf(" (counted by the interfaces: %s)", cli.List(b.LinkDrops))
		}
		parts = append(parts, elsewhere)
	}
	if len(parts) == 0 {
		return ""
	}
	what := "lost: "
	if b.Lost == nil {
		what = "dropped: "
	}
	return what + strings.Join(parts, ", ")
}
