// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/peers"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
)

// MaxWorkers is the maximum number of workers of a card.
const MaxWorkers = peers.Max

// Workers holds the engines of one card; each engine has one worker. A session belongs to one engine: its queue pairs,
// CQs, SRQs, keys and doorbell are accessed only in that engine's rounds, and need no lock. Shared state (paths,
// addresses, groups) changes between the rounds of all engines.
type Workers struct {
	engines []*Engine
	next    int // the engine at which Serve starts its search
}

// NewWorkers returns a card's engines, one for each link. Config.Link is ignored, and Config.Ahead is divided among the
// engines. After an error all links are closed.
func NewWorkers(c Config, links []link.Link) (*Workers, error) {
	w := &Workers{}
	fail := func(err error) (*Workers, error) {
		_ = w.Close()
		for _, l := range links[len(w.engines):] {
			_ = l.Close()
		}
		return nil, err
	}
	c.Ahead /= len(links)
	var card *peers.Card
	if len(links) > 1 {
		card = new(peers.Card)
	}
	for _, l := range links {
		c.Link = l
		e, err := newEngine(c, card)
		if err != nil {
			return fail(err)
		}
		e.completions.clock = w.first(e).completions.clock
		w.engines = append(w.engines, e)
	}
	return w, nil
}

// first returns the first engine; e if there are no engines yet.
func (w *Workers) first(e *Engine) *Engine {
	if len(w.engines) > 0 {
		return w.engines[0]
	}
	return e
}

// Serve assigns a session permanently to the engine that serves the fewest sessions, and returns that engine. Calls
// must not be concurrent.
func (w *Workers) Serve(s *Session) *Engine {
	best := w.engines[w.next%len(w.engines)]
	for i := range w.engines {
		if e := w.engines[(w.next+i)%len(w.engines)]; e.doorbells.serves.Load() < best.doorbells.serves.Load() {
			best = e
		}
	}
	w.next++
	best.Do(func() { s.join(best) })
	return best
}

// Number returns the number of engines.
func (w *Workers) Number() int { return len(w.engines) }

// Start starts the workers.
func (w *Workers) Start() {
	for _, e := range w.engines {
		e.Start()
	}
}

// Close stops all engines and closes their links; see Engine.Close.
func (w *Workers) Close() (err error) {
	for _, e := range w.engines {
		err = errors.Join(err, e.Close())
	}
	return err
}

// Do runs change between the rounds of all engines. It holds all leases, acquired in the order of the engines. For a
// change of a single session use Engine.Do, which does not stop the other engines.
func (w *Workers) Do(change func()) { w.doFrom(0, change) }

func (w *Workers) doFrom(first int, change func()) {
	if first == len(w.engines) {
		change()
		return
	}
	w.engines[first].Do(func() { w.doFrom(first+1, change) })
}

// ChangeLink is Engine.ChangeLink for a change of any of the links.
func (w *Workers) ChangeLink(change func()) {
	descriptors := make([][]int, len(w.engines))
	w.Do(func() {
		change()
		for i, e := range w.engines {
			descriptors[i] = e.linkChanged()
		}
	})
	for i, e := range w.engines {
		e.runner.SleepOn(descriptors[i])
	}
}

// Until runs rounds of all engines in the caller's thread until done returns true or the timeout expires; see
// Engine.Until.
func (w *Workers) Until(done func() bool, timeout time.Duration) bool {
	for end := time.Now().Add(timeout); ; {
		over, worked := false, false
		w.Do(func() {
			if over = w.engines[0].closed || done(); over {
				return
			}
			for _, e := range w.engines {
				worked = e.runRound() || worked
			}
		})
		if over || time.Now().After(end) {
			return over
		}
		if !worked {
			time.Sleep(runner.RetryTime)
		}
	}
}

// each runs change for every engine. It runs in Workers.Do, as do the methods below that call it.
func (w *Workers) each(change func(e *Engine)) {
	for _, e := range w.engines {
		change(e)
	}
}

// SetAddresses replaces the card's own addresses.
func (w *Workers) SetAddresses(own []wire.GID) {
	w.each(func(e *Engine) { e.tables.setAddresses(own) })
}

// SetBroadcasts replaces the broadcast addresses of the card's subnets. They are not valid as source addresses.
func (w *Workers) SetBroadcasts(all []wire.GID) {
	w.each(func(e *Engine) { e.tables.setBroadcasts(all) })
}

// SetMACs replaces the card's own MACs: unicast frames to other MACs are dropped. Without MACs, which is the default,
// all unicast frames are accepted.
func (w *Workers) SetMACs(macs ...wire.MAC) { w.each(func(e *Engine) { e.tables.setMACs(macs...) }) }

// SetMTU changes the maximum payload that is sent and received.
func (w *Workers) SetMTU(mtu wire.MTU) { w.each(func(e *Engine) { e.tables.setMTU(mtu) }) }

// SetLink sets whether the link accepts frames. When it goes down, frames that it has not accepted yet are dropped, as
// they would be too old when it comes up again.
func (w *Workers) SetLink(up bool) { w.each(func(e *Engine) { e.setLink(up) }) }

// SetUser sets the user that owns all programs of the card; nil: no programs, or several users. Workers of cards of the
// same user process a few packets for each other; see helper. Unlike the other setters, it must not be called in Do.
func (w *Workers) SetUser(user any) {
	if e := w.engines[0]; e.helper != nil { // only a card with one engine has a helper
		e.Do(func() { e.helper.setUser(user) })
	}
}

// AddTap adds a tap. A packet that is handed over is captured at the engine that receives it.
func (w *Workers) AddTap(t *Tap) { w.each(func(e *Engine) { e.taps.add(t) }) }

// RemoveTap ends AddTap.
func (w *Workers) RemoveTap(t *Tap) { w.each(func(e *Engine) { e.taps.remove(t) }) }

// SetPath changes a path. Each engine sends or drops the packets that it holds for the path, unless the path is still
// resolving.
func (w *Workers) SetPath(p *Path, attr PathAttr) { w.each(func(e *Engine) { p.set(e, attr) }) }

// Held returns the number of packets that wait for a neighbour's address.
func (w *Workers) Held() (n int) {
	w.each(func(e *Engine) { n += e.round.held })
	return n
}

// SetGroup replaces the queue pairs that are attached to a group. Without members the group is removed.
func (w *Workers) SetGroup(mgid wire.GID, members []*QP) {
	if len(w.engines) == 1 {
		w.engines[0].setGroup(mgid, members)
		return
	}
	of := map[*Engine][]*QP{}
	for _, qp := range members {
		of[qp.Session.engine] = append(of[qp.Session.engine], qp)
	}
	var with []*peers.Peer
	for _, e := range w.engines {
		if len(of[e]) > 0 {
			with = append(with, e.peers.Peer)
		}
	}
	w.each(func(e *Engine) {
		e.setGroup(mgid, of[e])
		e.peers.SetMembers(mgid, with)
	})
}

// Counters returns the sums of the counters of all engines, each read between two of its rounds.
func (w *Workers) Counters() (sum Counters) {
	for _, e := range w.engines {
		c := e.Counters()
		sum.add(&c)
	}
	return sum
}

// Clock returns the card's free-running clock (CLOCK_MONOTONIC), in ns.
func (w *Workers) Clock() uint64 {
	free, _ := w.engines[0].completions.clock.read()
	return free
}

// Relay returns the relay through which other links send on the first engine's link; see link.XDP.SendApart. The card
// must have several engines.
func (w *Workers) Relay() link.Relay { return w.engines[0].peers.Relay }

// Relayed returns the number of frames that other links have passed to the relay, and the number of those that the
// first engine has sent or dropped.
func (w *Workers) Relayed() (given, done uint64) { return w.engines[0].peers.RelayCounts() }
