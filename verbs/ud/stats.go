package ud

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// Stats are an endpoint's own numbers.
type Stats struct {
	Sent     uint64 // messages queued
	Lost     uint64 // of Sent: refused by the card, or queued behind a refused one (see SendError)
	Received uint64 // messages lent
	Strays   uint64 // messages discarded because they were not from the peer of Dial

	Lent     int    // buffers with the program now
	MostLent int    // at any time
	Starved  uint64 // times that the program held all buffers, so that the card dropped messages

	Handles int    // destinations that are resolved now
	Evicted uint64 // destinations dropped because there were more than MaxHandles
}

// Stats reads the endpoint's numbers.
func (e *Endpoint) Stats() Stats {
	if e == nil {
		return Stats{}
	}
	r, s := &e.recv, &e.send
	r.mu.Lock()
	stats := Stats{
		Received: r.stats.received, Strays: r.stats.strays,
		Lent: r.stats.lent, MostLent: r.stats.mostLent, Starved: r.stats.starved,
	}
	r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Sent, stats.Lost = s.sent, s.lost
	stats.Handles, stats.Evicted = len(s.handles.all), s.handles.evicted
	return stats
}

// Drops counts the packets that the card has dropped since it was opened, for all its programs, by a
// name such as "engine drop_qkey". Each dropped packet has one name; package hca's Statistics
// explains them. verbs.ErrUnsupported if the card does not count.
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
