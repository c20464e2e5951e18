package perf

import (
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
)

// addSent reports what a sender knows.
func (r *perftestRun) addSent(sent uint64, elapsed time.Duration) error {
	b := bandwidthResult{Size: r.test.Size, NotMeasured: r.notTold("received")}
	b.addSent(sent, elapsed)
	drops, link, err := r.losses()
	b.Drops, b.LinkDrops = bySide(drops, nil), bySide(link, nil)
	r.report.Bandwidth = append(r.report.Bandwidth, b)
	return err
}

// addReceived reports what a receiver knows.
func (r *perftestRun) addReceived(a *arrivals) error {
	b := bandwidthResult{Size: r.test.Size, NotMeasured: r.notTold("sent")}
	b.addReceived(outcome{Received: a.packets, Elapsed: a.elapsed()})
	drops, link, err := r.losses()
	b.Drops, b.LinkDrops = bySide(nil, drops), bySide(nil, link)
	r.report.Bandwidth = append(r.report.Bandwidth, b)
	return err
}

// notTold says why half of a result is missing.
func (r *perftestRun) notTold(what string) string {
	return fmt.Sprintf("not measured: what was %s, and so what was lost; perftest tells it to nobody but who reads what %s prints", what, r.binary())
}

// losses is what was dropped on this side.
func (r *perftestRun) losses() (drops, link map[string]uint64, err error) {
	after, err := r.device.Counters()
	if err != nil {
		return nil, nil, err
	}
	changed := card.Since(r.before, after)
	return card.Losses(changed), card.LinkLosses(changed), nil
}
