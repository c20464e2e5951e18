package datapath

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
)

// MaxWorkers is how many workers a card may have.
const MaxWorkers = 8

// Workers are the engines of one card, one for each worker. A session is served by one of them: its queue pairs, CQs,
// SRQs, keys and doorbell are touched in that engine's rounds only, and need no lock. What all sessions share (paths,
// addresses, groups) changes between the rounds of all engines.
type Workers struct {
	engines []*Engine
	next    int // where Serve begins to look
}

// NewWorkers makes a card's engines, one for each link. Config.Link is not used.
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
	var shared *sharing
	if len(links) > 1 {
		shared = new(sharing)
	}
	for _, l := range links {
		c.Link = l
		e, err := newEngine(c, shared)
		if err != nil {
			return fail(err)
		}
		e.clock = w.first(e).clock
		w.engines = append(w.engines, e)
	}
	if shared != nil {
		shared.engines = w.engines
	}
	return w, nil
}

// first is the first engine; the one given while there is none.
func (w *Workers) first(e *Engine) *Engine {
	if len(w.engines) > 0 {
		return w.engines[0]
	}
	return e
}

// Serve adds a session to the engine that serves the fewest, which serves it from then on. The calls of Serve come one
// at a time.
func (w *Workers) Serve(s *Session) *Engine {
	best := w.engines[w.next%len(w.engines)]
	for i := range w.engines {
		if e := w.engines[(w.next+i)%len(w.engines)]; e.serves.Load() < best.serves.Load() {
			best = e
		}
	}
	w.next++
	best.Do(func() { best.addSession(s) })
	return best
}

// Number is how many engines there are.
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

// Do runs change between the rounds of all engines: it has all leases, in the order of the engines. A change that
// concerns one session alone goes to its engine's Do, and the others go on meanwhile.
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

// Until is Engine.Until with rounds of all engines.
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

// each runs a change of every engine's tables. It runs in Workers.Do, as the methods below do, each of which is that of
// Engine for all.
func (w *Workers) each(change func(e *Engine)) {
	for _, e := range w.engines {
		change(e)
	}
}

// SetAddresses: see Engine.
func (w *Workers) SetAddresses(own []wire.GID) { w.each(func(e *Engine) { e.SetAddresses(own) }) }

// SetBroadcasts: see Engine.
func (w *Workers) SetBroadcasts(all []wire.GID) { w.each(func(e *Engine) { e.SetBroadcasts(all) }) }

// SetMACs: see Engine.
func (w *Workers) SetMACs(macs ...wire.MAC) { w.each(func(e *Engine) { e.SetMACs(macs...) }) }

// SetMTU: see Engine.
func (w *Workers) SetMTU(mtu wire.MTU) { w.each(func(e *Engine) { e.SetMTU(mtu) }) }

// SetLink: see Engine.
func (w *Workers) SetLink(up bool) { w.each(func(e *Engine) { e.SetLink(up) }) }

// SetUser says whose programs alone use the card; nil: nobody's, or several users'. Then workers of cards of the same user
// deal with a few packets for each other; see helper. It does not run in Do.
func (w *Workers) SetUser(user any) {
	if e := w.engines[0]; e.helper != nil { // which only a card with one engine has
		e.Do(func() { e.helper.setUser(user) })
	}
}

// AddTap: see Engine. Of a packet that an engine hands over, the tap gets what the other one does with it.
func (w *Workers) AddTap(t *Tap) { w.each(func(e *Engine) { e.AddTap(t) }) }

// RemoveTap: see Engine.
func (w *Workers) RemoveTap(t *Tap) { w.each(func(e *Engine) { e.RemoveTap(t) }) }

// SetPath: see Engine. Each engine sends, or drops, what it holds for the path.
func (w *Workers) SetPath(p *Path, attr PathAttr) { w.each(func(e *Engine) { e.SetPath(p, attr) }) }

// Held: see Engine.
func (w *Workers) Held() (n int) {
	w.each(func(e *Engine) { n += e.Held() })
	return n
}

// SetGroup: see Engine. Each engine delivers to its own members, and knows which others have some.
func (w *Workers) SetGroup(mgid wire.GID, members []*QP) {
	if len(w.engines) == 1 {
		w.engines[0].SetGroup(mgid, members)
		return
	}
	of := map[*Engine][]*QP{}
	for _, qp := range members {
		of[qp.Session.engine] = append(of[qp.Session.engine], qp)
	}
	w.each(func(e *Engine) {
		e.SetGroup(mgid, of[e])
		var elsewhere []*Engine
		for _, other := range w.engines {
			if other != e && len(of[other]) > 0 {
				elsewhere = append(elsewhere, other)
			}
		}
		e.others.setElsewhere(mgid, elsewhere)
	})
}

// Counters are the sums of all engines', each taken between two of its rounds.
func (w *Workers) Counters() (sum Counters) {
	for _, e := range w.engines {
		c := e.Counters()
		sum.add(&c)
	}
	return sum
}

// Clock: see Engine. All engines have the same.
func (w *Workers) Clock() uint64 { return w.engines[0].Clock() }

// sharing is what the engines of a card share, if there are several.
type sharing struct {
	engines []*Engine
	made    int // engines
	homes   homes
	flights atomic.Int32 // sessions with packets on their way
	atomics sync.Mutex   // held while an atomic of a peer's is carried out: regions of two sessions can be one memory
}
