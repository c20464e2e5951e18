// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/report"
)

// addSent reports the sender's part of a result.
func (r *perftestRun) addSent(sent uint64, elapsed time.Duration) error {
	b := report.BandwidthResult{Size: r.test.Size, NotMeasured: r.notReported("received")}
	b.AddSent(sent, elapsed)
	changed, err := r.changed()
	if err != nil {
		return err
	}
	b.InTrains = new(card.Count(changed, "socket", "tx_in_trains"))
	b.Drops, b.LinkDrops = report.BySide(card.Losses(changed), nil), report.BySide(card.LinkLosses(changed), nil)
	r.report.Bandwidth = append(r.report.Bandwidth, b)
	return nil
}

// addReceived reports the receiver's part of a result.
func (r *perftestRun) addReceived(size int, o protocol.Outcome) error {
	b := report.BandwidthResult{Size: size, NotMeasured: r.notReported("sent")}
	b.AddReceived(o)
	changed, err := r.changed()
	if err != nil {
		return err
	}
	b.Drops, b.LinkDrops = report.BySide(nil, card.Losses(changed)), report.BySide(nil, card.LinkLosses(changed))
	b.Packets = r.packets(changed)
	r.report.Bandwidth = append(r.report.Bandwidth, b)
	return nil
}

// notReported returns the reason why half of a result is missing.
func (r *perftestRun) notReported(what string) string {
	return fmt.Sprintf("not measured: messages %s, and therefore messages lost; see the output of %s, which does not send them", what, r.options.Program())
}

// changed returns the changes of the counters since the start of the exchange.
func (r *perftestRun) changed() ([]card.Counter, error) {
	after, err := r.device.Counters()
	if err != nil {
		return nil, err
	}
	return card.Since(r.before, after), nil
}
