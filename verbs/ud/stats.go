package ud

import "github.com/roced/roced/verbs"

// Stats are an endpoint's own numbers.
type Stats struct {
	Sent     uint64 // messages queued
	Lost     uint64 // of Sent: refused by the card, or queued behind such a one (see SendError)
	Received uint64 // messages lent
	Strays   uint64 // messages that came from others than the peer of Dial, and were passed over

	Lent     int    // buffers with the program now
	MostLent int    // at any time
	Starved  uint64 // how often the program had all buffers: what came then was dropped by the card

	Handles int    // destinations that are resolved now
	Evicted uint64 // destinations given up because there were more than MaxHandles
}

// Stats reads the endpoint's numbers.
func (e *Endpoint) Stats() Stats {
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

// Drops are the packets that the card has dropped, by name, as "engine drop_qkey": of all that use
// it, since it was opened. Each dropped packet is in one. What a name means is said at package
// hca's Statistics. verbs.ErrUnsupported where the card does not count.
func (e *Endpoint) Drops() (map[string]uint64, error) {
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
