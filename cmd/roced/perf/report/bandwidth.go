// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/protocol"
)

// BandwidthResult is the result for one size. Rates are of payload, without headers. A value that
// was not measured is nil: null in JSON, a dash in the table.
type BandwidthResult struct {
	Size             int               `json:"size"` // bytes
	Duration         *time.Duration    `json:"duration_ns"`
	Sent             *uint64           `json:"sent"`
	InTrains         *uint64           `json:"sent_in_trains"`      // of those sent; see hca.SendMode
	NoTrains         string            `json:"no_trains,omitempty"` // the reason if no packet was
	Received         *uint64           `json:"received"`
	Lost             *uint64           `json:"lost"`
	SentPerSecond    *uint64           `json:"sent_per_second"`
	ReceivedPerSec   *uint64           `json:"received_per_second"`
	ReceivedBytesSec *uint64           `json:"received_bytes_per_second"`
	Drops            map[string]uint64 `json:"drops"`       // by side, place and name
	Unaccounted      *uint64           `json:"unaccounted"` // lost, but not counted in Drops
	LinkDrops        map[string]uint64 `json:"link_drops"`  // counted by the interfaces; may repeat Drops

	Packets *Packets `json:"packets,omitempty"` // with connections: packets of this side's card

	NotMeasured string `json:"not_measured,omitempty"` // the reason for nil values
}

// NewBandwidthResult combines the results of both sides.
func NewBandwidthResult(size int, sent uint64, elapsed time.Duration, o protocol.Outcome) BandwidthResult {
	b := BandwidthResult{Size: size}
	b.AddSent(sent, elapsed)
	b.AddReceived(o)
	b.Lost = new(sent - min(sent, o.Received))
	return b
}

func (b *BandwidthResult) AddSent(sent uint64, elapsed time.Duration) {
	b.Sent, b.Duration, b.SentPerSecond = &sent, &elapsed, rate(sent, elapsed)
}

func (b *BandwidthResult) AddReceived(o protocol.Outcome) {
	b.Received, b.ReceivedPerSec = &o.Received, rate(o.Received, o.Elapsed)
	if b.ReceivedPerSec != nil {
		b.ReceivedBytesSec = new(*b.ReceivedPerSec * uint64(b.Size))
	}
}

// rate returns n per second, or nil if elapsed is 0, as with one message.
func rate(n uint64, elapsed time.Duration) *uint64 {
	if elapsed <= 0 {
		return nil
	}
	return new(cli.PerSecond(n, elapsed))
}

// AddDrops records where packets were lost, as far as the two sides counted them.
func (b *BandwidthResult) AddDrops(client, server map[string]uint64) {
	b.Drops = BySide(client, server)
	if b.Lost != nil {
		b.Unaccounted = new(*b.Lost - min(*b.Lost, card.Sum(b.Drops)))
	}
}

// BySide combines the drops of both sides. It returns nil if the drops of both sides are unknown.
func BySide(client, server map[string]uint64) map[string]uint64 {
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
