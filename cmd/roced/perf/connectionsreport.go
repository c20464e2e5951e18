package perf

import (
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/perftest"
)

// over is what a report says of connections.
type over struct {
	Service   string `json:"service"`   // RC or UC
	Operation string `json:"operation"` // send, write, read or atomic
	Pairs     int    `json:"queue_pairs"`
	Depth     int    `json:"depth"` // requests of a queue pair that are outstanding at most
	PathMTU   int    `json:"path_mtu"`
}

func (o *over) String() string {
	pairs := "1 queue pair"
	if o.Pairs > 1 {
		pairs = fmt.Sprintf("%d queue pairs", o.Pairs)
	}
	return fmt.Sprintf("%s over %s, %s, path MTU %d", o.Operation, o.Service, pairs, o.PathMTU)
}

// packets are what a side's card has sent for its connections, and why some of it again.
type packets struct {
	Sent         uint64 `json:"sent"` // answers among them
	InTrains     uint64 `json:"sent_in_trains"`
	Again        uint64 `json:"sent_again"`
	Timeouts     uint64 `json:"timeouts"`
	SequenceNAKs uint64 `json:"sequence_naks"` // the peer misses something
	RNRNAKs      uint64 `json:"rnr_naks"`      // it has no receive posted
}

func newPackets(changed []card.Counter) *packets {
	count := func(name string) uint64 { return card.Count(changed, "engine", name) }
	return &packets{
		Sent: count("sent"), InTrains: card.Count(changed, "socket", "tx_in_trains"), Again: count("retransmits"),
		Timeouts: count("timeouts"), SequenceNAKs: count("sequence_naks"), RNRNAKs: count("rnr_naks"),
	}
}

// again is empty if nothing was sent again.
func (p *packets) again() string {
	if p == nil || p.Again == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s packets were sent again: %s time-outs, %s times the peer missed one, %s times it was not ready",
		cli.Grouped(p.Again), cli.Grouped(p.Sent), cli.Grouped(p.Timeouts), cli.Grouped(p.SequenceNAKs), cli.Grouped(p.RNRNAKs))
}

// addRequested reports what a client knows: of a reliable connection, all was carried out.
func (c *connections) addRequested(elapsed time.Duration) (b bandwidthResult, err error) {
	b = bandwidthResult{Size: c.test.Size, NotMeasured: c.notTold("received")}
	b.addSent(c.all(), elapsed)
	if c.options.rc {
		b.addReceived(outcome{Received: c.all(), Elapsed: elapsed})
		b.Lost, b.NotMeasured = new(uint64(0)), ""
	}
	changed, err := c.changed()
	b.Drops, b.LinkDrops = bySide(card.Losses(changed), nil), bySide(card.LinkLosses(changed), nil)
	b.Packets = newPackets(changed)
	if bursts := !c.options.operation.HasAnswer() && c.test.Size > c.report.Over.PathMTU; bursts && b.Packets.InTrains == 0 {
		b.NoTrains = whyNoTrains(c.device)
	}
	c.report.Bandwidth = append(c.report.Bandwidth, b)
	return b, err
}

// addTold reports what a client has told of what this side's card did.
func (c *connections) addTold(told perftest.Result) error {
	b := bandwidthResult{Size: c.test.Size, NotMeasured: "not measured here: the numbers are the client's, as the card did all by itself"}
	b.Sent, b.SentPerSecond = new(told.Messages), new(told.PerSecond())
	if c.options.rc {
		b.Received, b.ReceivedPerSec, b.ReceivedBytesSec = b.Sent, b.SentPerSecond, new(told.BytesPerSecond())
		b.Lost = new(uint64(0))
	}
	changed, err := c.changed()
	b.Drops, b.LinkDrops = bySide(nil, card.Losses(changed)), bySide(nil, card.LinkLosses(changed))
	c.report.Bandwidth = append(c.report.Bandwidth, b)
	return err
}
