// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Stats are the counters of an endpoint.
type Stats struct {
	Sent     uint64 // messages queued
	Lost     uint64 // of Sent: refused by the card, or queued behind a refused one (see SendError)
	Received uint64 // messages received
	Strays   uint64 // messages discarded because they were not from the peer of Dial

	Lent     int    // buffers held by the program now
	MostLent int    // the maximum of Lent
	Starved  uint64 // times that the program held all buffers, so that the card dropped messages

	Handles int    // destinations that are resolved now
	Evicted uint64 // destinations dropped because there were more than MaxHandles
}

// Stats returns the endpoint's counters.
func (e *Endpoint) Stats() Stats {
	if e == nil {
		return Stats{}
	}
	r := e.receives.Stats()
	stats := Stats{
		Lost: e.lost.Load(), Received: r.Received, Strays: e.strays.Load(),
		Lent: r.Lent, MostLent: r.MostLent, Starved: r.Starved,
	}
	e.sends.Do(func(p transport.Progress) { stats.Sent = p.Posted })
	stats.Handles, stats.Evicted = e.handles.count()
	return stats
}

// Drops returns the packets that the card has dropped since it was opened, for all its programs, by names such as
// "engine drop_qkey". Each dropped packet is counted under one name; package hca's Statistics documents them.
// verbs.ErrUnsupported if the card does not count.
func (e *Endpoint) Drops() (map[string]uint64, error) {
	if e == nil {
		return nil, fmt.Errorf("read drops: %w", errNil)
	}
	all, err := e.verbs.Counters()
	if err != nil {
		return nil, err
	}
	drops := map[string]uint64{}
	for _, c := range all {
		if c.Lost && c.Value > 0 {
			drops[name(c)] = c.Value
		}
	}
	return drops, nil
}

func name(c verbs.Counter) string { return c.Place + " " + c.Name }
