//go:build linux

package hca

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
)

var (
	// askPauses are after which neighbours that have not answered since the link came up are asked
	// for again: the first question may have been lost, where the other end came up later. The
	// kernel itself repeats it after a second.
	askPauses = []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond}

	// carrierPauses are between looks for a carrier that was lost, for two seconds: the kernel
	// holds back its reports of carriers for up to a second.
	carrierPauses = slices.Repeat([]time.Duration{10 * time.Millisecond}, 200)
)

// repeats is a timer for something that is repeated, with a list of pauses.
type repeats struct {
	timer  *time.Timer
	pauses []time.Duration
	next   int
}

func newRepeats(pauses []time.Duration) *repeats {
	r := &repeats{timer: time.NewTimer(0), pauses: pauses}
	r.timer.Stop()
	return r
}

// again sets the timer for the next pause, if there is one.
func (r *repeats) again() {
	if r.next < len(r.pauses) {
		r.timer.Reset(r.pauses[r.next])
		r.next++
	}
}

// anew starts the list over: the next pause is the first.
func (r *repeats) anew() { r.next = 0 }

// keepUp follows the host until the card is closed.
func (card *Card) keepUp() {
	card.changes.Missed() // what came between the first look and now
	retry, ask, carrier := newRepeats(host.RetryPauses), newRepeats(askPauses), newRepeats(carrierPauses)
	for {
		var look func() looked
		select {
		case <-card.life.stopping:
			return
		case <-card.changes.Ready():
			look = func() looked { return card.look(card.changes.Take()) }
		case <-card.refused:
			look = func() looked { return card.look(changes{port: true}) }
		case <-retry.timer.C:
			look = func() looked { return card.look(everything()) }
		case <-carrier.timer.C:
			look = func() looked { return card.look(changes{port: true}) }
		case <-ask.timer.C:
			look = func() looked { return looked{failed: card.askAgain() != nil} }
			ask.again()
		}
		goOn := host.Pace(card.life.stopping, func() {
			found := look()
			if found.cameUp {
				ask.anew()
				ask.again()
			}
			if found.noCarrier {
				carrier.again()
			} else {
				carrier.anew()
			}
			if found.failed {
				retry.next = min(retry.next, len(retry.pauses)-1) // the last for ever
				retry.again()
			} else {
				retry.anew()
			}
		})
		if !goOn {
			return
		}
	}
}

// noteRefused is called by the engine when the interface drops packets that are sent: it may have
// lost its carrier.
func (card *Card) noteRefused() {
	select {
	case card.refused <- struct{}{}:
	default:
	}
}

func (card *Card) askAgain() error {
	if !card.port().Up {
		return nil
	}
	return card.paths.AskHops(true)
}

// update looks up what has changed.
func (card *Card) update(c changes) (cameUp bool, err error) {
	var moved portChange
	if c.port {
		if moved, err = card.updatePort(); err != nil {
			return false, err
		}
	}
	up := card.port().Up
	err = card.paths.Update(paths.Change{Changes: c.Changes, GIDs: moved.gids, Up: up, CameUp: moved.up})
	return up && moved.up, errors.Join(moved.unsteered, err)
}

func (card *Card) wantsCarrier() bool {
	now := card.port()
	return now.Enabled && !now.Up && now.Lost == nil
}

// looked is what a look has found.
type looked struct {
	cameUp    bool // the link
	noCarrier bool // the interface is up, except that it has no carrier
	failed    bool // something could not be asked, or opened
}

// look brings the card's state up to date. What could not be asked stays as it was. If the interface
// does not exist any more, the card fails.
func (card *Card) look(c changes) (found looked) {
	cameUp, err := card.update(c)
	switch was := card.lagging.Swap(err != nil); {
	case errors.Is(err, network.ErrGone):
		card.fail(err)
		return looked{}
	case card.life.err() != nil:
		return looked{}
	case err != nil && !was:
		card.log.Warn("cannot read changes from the host; using the last known state, and trying again", "device", card.Name(), "error", err)
	case err == nil && was:
		card.log.Info("changes on the host can be read again", "device", card.Name())
	}
	return looked{cameUp: cameUp, noCarrier: card.wantsCarrier(), failed: err != nil || card.port().Lost != nil}
}

// watchPause is the time between two checks that packets can still come. The kernel has no notification of
// `bpftool link detach` (and refuses `ip link set … xdp off`), so the card polls. A check is one system call.
const watchPause = time.Second

// watch fails a card to which no packets come any more.
func (card *Card) watch() {
	look := time.NewTicker(watchPause)
	defer look.Stop()
	for {
		select {
		case <-card.life.done:
			return
		case <-look.C:
		}
		if err := card.host.Check(); err != nil {
			card.fail(err)
			return
		}
	}
}

// tooBig counts routers' reports of packets that they could not forward. The card does not act on
// them, since anybody can forge them. It tells programs (EventPathMigErr) and logs them, since nothing else shows that packets are lost at
// a router. The administrator can give the route an MTU (ip route … mtu), which the card follows.
type tooBig struct {
	packets atomic.Uint64
	logged  time.Time
	told    time.Time // connections to whom it matters
}

// tellPause is the shortest time between two looks for connections whose packets are too big: each looks at all.
const tellPause = time.Second

// tellTooLong tells programs whose connections send more to an address than a router says that it forwards. That is
// all: anybody can forge the report.
func (card *Card) tellTooLong(dest wire.GID, mtu wire.MTU) {
	card.mu.Lock()
	defer card.mu.Unlock()
	card.engine.Do(func() {
		for q := range card.qps.All() {
			if q.connection != nil && q.connection.Peer == dest && q.connection.MTU > mtu {
				q.connection.NoteTooLong()
			}
		}
	})
}

// logPause is the shortest time between two log lines about packets that are too big.
const logPause = time.Minute

// noteTooBig is called by the listener, for all packets of the host to the RoCEv2 port.
func (card *Card) noteTooBig(said host.TooBig) {
	if _, err := card.gidIndex(wire.GIDFromAddr(said.Source)); err != nil {
		return // another interface's
	}
	card.tooBig.packets.Add(1)
	now := time.Now()
	if now.Sub(card.tooBig.told) > tellPause {
		card.tooBig.told = now
		card.tellTooLong(wire.GIDFromAddr(said.Dest), wire.MTUFor(said.MTU))
	}
	if now.Sub(card.tooBig.logged) > logPause {
		card.tooBig.logged = now
		card.log.Warn("a router cannot forward packets of this size: send less, or tell the route (ip route change … mtu)",
			"device", card.Name(), "destination", said.Dest, "mtu", said.MTU, "rdma_mtu", wire.MTUFor(said.MTU))
	}
}

// pendingChanges gathers what has changed around a card until the card looks. It is a host.Changes.
type pendingChanges struct{ host.Pending[changes] }

func newPendingChanges() *pendingChanges { return &pendingChanges{host.NewPending[changes]()} }

// changes are what is to be looked at.
type changes struct {
	port bool
	paths.Changes
}

// everything is what there is to look at.
func everything() changes {
	return changes{true, paths.Changes{AllRoutes: true, AllNeighbours: true}}
}

// Port implements host.Changes.
func (p *pendingChanges) Port() { p.Note(func(c *changes) { c.port = true }) }

// Routes implements host.Changes.
func (p *pendingChanges) Routes() { p.Note(func(c *changes) { c.AllRoutes = true }) }

// Missed implements host.Changes.
func (p *pendingChanges) Missed() { p.Note(func(c *changes) { *c = everything() }) }

// Route implements host.Changes. Groups have no routes; which table it was does not matter, since the
// route is asked for again.
func (p *pendingChanges) Route(dest netip.Prefix, _ int) {
	if dest.Bits() == 0 || !dest.Addr().IsMulticast() {
		p.Note(func(c *changes) { c.AddRoute(dest) })
	}
}

// follower is a card as its host sees it: network.Card.
type follower struct {
	*pendingChanges
	card *Card
}

// TooBig implements network.Card.
func (f follower) TooBig(said host.TooBig) { f.card.noteTooBig(said) }

// Look implements network.Card.
func (f follower) Look() (done bool) {
	if f.card.look(everything()).failed {
		f.Missed()
		return false
	}
	return true
}

// Close implements network.Card.
func (f follower) Close() error { return f.card.Close() }

// Neighbour implements host.Changes.
func (p *pendingChanges) Neighbour(address netip.Addr) {
	p.Note(func(c *changes) { c.AddNeighbour(address) })
}
