// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/report"
	"github.com/roced/roced/cmd/roced/perf/traffic"
)

// packets returns the packet counters of connections, or nil for datagrams.
func (r *perftestRun) packets(changed []card.Counter) *report.Packets {
	if !r.options.Connects() {
		return nil
	}
	count := func(name string) uint64 { return card.Count(changed, "engine", name) }
	return &report.Packets{
		Sent: count("sent"), InTrains: card.Count(changed, "socket", "tx_in_trains"), Again: count("retransmits"),
		Timeouts: count("timeouts"), Probes: count("probes"), SequenceNAKs: count("sequence_naks"), RNRNAKs: count("rnr_naks"),
		ECNMarked: count("np_ecn_marked_roce_packets"), CNPSent: count("np_cnp_sent"), CNPHandled: count("rp_cnp_handled"),
	}
}

// addRequested reports a client's result. With a reliable connection all requests have completed.
func (c *connections) addRequested(elapsed time.Duration) (b report.BandwidthResult, err error) {
	b = report.BandwidthResult{Size: c.test.Size, NotMeasured: c.notReported("received")}
	b.AddSent(c.all(), elapsed)
	if c.options.RC {
		b.AddReceived(protocol.Outcome{Received: c.all(), Elapsed: elapsed})
		b.Lost, b.NotMeasured = new(uint64(0)), ""
	}
	changed, err := c.changed()
	b.Drops, b.LinkDrops = report.BySide(card.Losses(changed), nil), report.BySide(card.LinkLosses(changed), nil)
	b.Packets = c.packets(changed)
	if bursts := !c.options.Operation.HasAnswer() && c.test.Size > c.report.Over.PathMTU; bursts && b.Packets.InTrains == 0 {
		b.NoTrains = traffic.WhyNoTrains(c.device)
	}
	c.report.Bandwidth = append(c.report.Bandwidth, b)
	return b, err
}

// addClientResult reports the result that the client has sent to this server.
func (c *connections) addClientResult(result perftest.Result) error {
	b := report.BandwidthResult{Size: c.test.Size, NotMeasured: "not measured here: the values are the client's, since only the card of this side took part"}
	b.Sent, b.SentPerSecond = new(result.Messages), new(result.PerSecond())
	if c.options.RC {
		b.Received, b.ReceivedPerSec, b.ReceivedBytesSec = b.Sent, b.SentPerSecond, new(result.BytesPerSecond())
		b.Lost = new(uint64(0))
	}
	changed, err := c.changed()
	b.Drops, b.LinkDrops = report.BySide(nil, card.Losses(changed)), report.BySide(nil, card.LinkLosses(changed))
	b.Packets = c.packets(changed)
	c.report.Bandwidth = append(c.report.Bandwidth, b)
	return err
}
