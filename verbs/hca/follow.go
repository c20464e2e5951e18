// SPDX-License-Identifier: Apache-2.0

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
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

var (
	// askPauses are the delays after which neighbours that have not responded since the link came up are queried again:
	// the first query may have been lost if the other end came up later. The kernel itself repeats it only after a
	// second.
	askPauses = []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond}

	// carrierPauses are the delays between checks for a lost carrier, two seconds in all: the kernel delays its reports
	// of carriers by up to a second.
	carrierPauses = slices.Repeat([]time.Duration{10 * time.Millisecond}, 200)
)

// repeats is a timer for an action that is repeated, with a list of pauses.
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

// again sets the timer for the next pause, if one remains.
func (r *repeats) again() {
	if r.next < len(r.pauses) {
		r.timer.Reset(r.pauses[r.next])
		r.next++
	}
}

// anew restarts the list: the next pause is the first.
func (r *repeats) anew() { r.next = 0 }

// follower updates a card to the state of its host, and reports the changes. It implements network.Card, through which
// the host notifies it.
type follower struct {
	pendingChanges
	*device
	qps     *handles.Numbers[qp]
	report  func(provider.EventReport) // reports an event to all sessions; called under mu
	fail    func(cause error)          // fails the card
	close   func() error               // closes the card
	refused chan struct{}              // of capacity 1: the interface dropped a packet instead of sending it
	lagging atomic.Bool                // the last query of the host failed
	tooBig  tooBig
}

// keepUp follows the host until the card is closed.
func (f *follower) keepUp() {
	f.Missed() // changes between the first look and now
	retry, ask, carrier := newRepeats(host.RetryPauses), newRepeats(askPauses), newRepeats(carrierPauses)
	for {
		var look func() looked
		select {
		case <-f.life.stopping:
			return
		case <-f.Ready():
			look = func() looked { return f.look(f.Take()) }
		case <-f.refused:
			look = func() looked { return f.look(changes{port: true}) }
		case <-retry.timer.C:
			look = func() looked { return f.look(everything()) }
		case <-carrier.timer.C:
			look = func() looked { return f.look(changes{port: true}) }
		case <-ask.timer.C:
			look = func() looked { return looked{failed: f.askAgain() != nil} }
			ask.again()
		}
		goOn := host.Pace(f.life.stopping, func() {
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
				retry.next = min(retry.next, len(retry.pauses)-1) // the last pause is repeated
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

// noteRefused is called by the engine when the interface drops packets instead of sending them: it may have lost its
// carrier.
func (f *follower) noteRefused() {
	select {
	case f.refused <- struct{}{}:
	default:
	}
}

func (f *follower) askAgain() error {
	if !f.port.Now().Up {
		return nil
	}
	return f.paths.AskHops(true)
}

// update queries the changed state and applies it.
func (f *follower) update(c changes) (cameUp bool, err error) {
	var moved portChange
	if c.port {
		if moved, err = f.updatePort(); err != nil {
			return false, err
		}
	}
	up := f.port.Now().Up
	err = f.paths.Update(paths.Change{Changes: c.Changes, GIDs: moved.gids, Up: up, CameUp: moved.up})
	return up && moved.up, errors.Join(moved.unsteered, err)
}

func (f *follower) wantsCarrier() bool {
	now := f.port.Now()
	return now.Enabled && !now.Up && now.Lost == nil
}

// looked is the result of a look.
type looked struct {
	cameUp    bool // the link
	noCarrier bool // the interface is up but has no carrier
	failed    bool // a query failed, or a socket could not be opened
}

// look updates the card's state. State that could not be queried stays unchanged. If the interface no longer exists,
// the card fails.
func (f *follower) look(c changes) (found looked) {
	cameUp, err := f.update(c)
	switch was := f.lagging.Swap(err != nil); {
	case errors.Is(err, network.ErrGone):
		f.fail(err)
		return looked{}
	case f.life.err() != nil:
		return looked{}
	case err != nil && !was:
		f.log.Warn("cannot read changes from the host; using the last known state and retrying", "device", f.port.Name(), "error", err)
	case err == nil && was:
		f.log.Info("changes on the host can be read again", "device", f.port.Name())
	}
	return looked{cameUp: cameUp, noCarrier: f.wantsCarrier(), failed: err != nil || f.port.Now().Lost != nil}
}

// watchPause is the time between two checks that packets can still arrive. The kernel has no notification of `bpftool
// link detach` (and refuses `ip link set … xdp off`), so the card polls. A check is one system call.
const watchPause = time.Second

// watch fails a card that no longer receives packets.
func (f *follower) watch() {
	look := time.NewTicker(watchPause)
	defer look.Stop()
	for {
		select {
		case <-f.life.done:
			return
		case <-look.C:
		}
		if err := f.host.Check(); err != nil {
			f.fail(err)
			return
		}
	}
}

// tooBig counts the routers' reports of packets that they could not forward (ICMP packet too big). Since anyone can
// forge them, the card does not act on them. It reports them to programs (EventPathMigErr) and logs them, since nothing
// else shows that a router drops packets. The administrator can set the MTU of the route (ip route … mtu), which the
// card follows.
type tooBig struct {
	packets atomic.Uint64
	logged  time.Time
	told    time.Time // time of the last report to connections
}

// tellPause is the minimum time between two searches for connections whose packets are too big: each search visits all
// queue pairs.
const tellPause = time.Second

// tellTooLong reports EventPathMigErr to programs whose connections send packets to an address that are larger than a
// router reports to forward. It changes nothing else, since anyone can forge the report.
func (f *follower) tellTooLong(dest wire.GID, mtu wire.MTU) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.engine.Do(func() {
		for q := range f.qps.All() {
			if q.connection != nil && q.connection.Peer == dest && q.connection.MTU > mtu {
				q.connection.NoteTooLong()
			}
		}
	})
}

// logPause is the minimum time between two log lines about packets that are too big.
const logPause = time.Minute

// TooBig implements network.Card: the listener reports the ICMP errors of the whole host for the RoCEv2 port.
func (f *follower) TooBig(said host.TooBig) {
	if !f.port.Has(wire.GIDFromAddr(said.Source)) {
		return // another interface's
	}
	f.tooBig.packets.Add(1)
	now := time.Now()
	if now.Sub(f.tooBig.told) > tellPause {
		f.tooBig.told = now
		f.tellTooLong(wire.GIDFromAddr(said.Dest), wire.MTUFor(said.MTU))
	}
	if now.Sub(f.tooBig.logged) > logPause {
		f.tooBig.logged = now
		f.log.Warn("a router cannot forward packets of this size; send smaller ones, or set the MTU of the route (ip route change … mtu)",
			"device", f.port.Name(), "destination", said.Dest, "mtu", said.MTU, "rdma_mtu", wire.MTUFor(said.MTU))
	}
}

// Look implements network.Card.
func (f *follower) Look() (done bool) {
	if f.look(everything()).failed {
		f.Missed()
		return false
	}
	return true
}

// Close implements network.Card.
func (f *follower) Close() error { return f.close() }

// pendingChanges collects the host's notifications until the follower queries what has changed. It implements
// host.Changes.
type pendingChanges struct{ host.Pending[changes] }

func newPendingChanges() pendingChanges { return pendingChanges{host.NewPending[changes]()} }

// changes lists the state to query.
type changes struct {
	port bool
	paths.Changes
}

// everything returns the changes that query all state.
func everything() changes {
	return changes{true, paths.Changes{AllRoutes: true, AllNeighbours: true}}
}

// Port implements host.Changes.
func (p *pendingChanges) Port() { p.Note(func(c *changes) { c.port = true }) }

// Routes implements host.Changes.
func (p *pendingChanges) Routes() { p.Note(func(c *changes) { c.AllRoutes = true }) }

// Missed implements host.Changes.
func (p *pendingChanges) Missed() { p.Note(func(c *changes) { *c = everything() }) }

// Route implements host.Changes. Groups have no routes. The table does not matter, since the route is queried again.
func (p *pendingChanges) Route(dest netip.Prefix, _ int) {
	if dest.Bits() == 0 || !dest.Addr().IsMulticast() {
		p.Note(func(c *changes) { c.AddRoute(dest) })
	}
}

// Neighbour implements host.Changes.
func (p *pendingChanges) Neighbour(address netip.Addr) {
	p.Note(func(c *changes) { c.AddNeighbour(address) })
}
