// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
)

// Ends has the two ends of a path.
type Ends struct{ Source, Dest wire.GID }

// Path is the route and next hop from one of the card's addresses to a destination, for all its users. The table
// follows changes of both.
type Path struct {
	table *Table
	ends  Ends
	entry *datapath.Path
	users int
	// payers has its users, with the number of their uses; the last user stays in it after leaving.
	payers  map[*quota.Quota]int
	left    time.Time // when its last user left
	lingers bool      // it is kept without users
	local   bool
	hop     *hop  // nil for a group or a local destination, and without a route
	why     error // why there is no route, or nil
	mtu     wire.MTU
}

// Ends returns the ends of the path.
func (p *Path) Ends() Ends { return p.ends }

// Entry returns the engine's part of the path.
func (p *Path) Entry() *datapath.Path { return p.entry }

// Err returns the reason why there is no route now, or nil.
func (p *Path) Err() error {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	return p.why
}

// MTU returns the RDMA MTU of the path on a card with an RDMA MTU.
func (p *Path) MTU(card wire.MTU) wire.MTU {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	if p.mtu == 0 {
		return card
	}
	return min(p.mtu, card)
}

// way is the result of a route query.
type way struct {
	local bool
	route host.Route
	hop   *hop
	why   error
	// reserved is set if a place for the hop is reserved for the user.
	reserved bool
}

// lookUp queries the host for the route between two ends, under asking only. An error means that the query failed; the
// path then stays unchanged.
func (t *Table) lookUp(ends Ends, user *quota.Quota) (w way, err error) {
	ours, local := t.owns(ends)
	switch {
	case local || ends.Dest.IsMulticast():
		return way{local: local}, nil
	case !ours:
		return way{why: fmt.Errorf("%w: %s does not have the source address %v any more", verbs.ErrNoGID, t.Name(), ends.Source)}, nil
	}
	source, dest := ends.Source.Addr(), ends.Dest.Addr()
	w.route, err = t.Host.Route(source, dest)
	if err == nil {
		w.hop, w.reserved, err = t.obtainHop(w.route.Hop, user)
	}
	switch {
	case errors.Is(err, host.ErrLocal):
		return way{why: fmt.Errorf("%w: %v is an address of this host, but not of %s: over XDP devices of one host do not reach each other; send from the device that has it",
			verbs.ErrUnreachable, dest, t.Name())}, nil
	case errors.Is(err, host.ErrNoRoute):
		return way{why: fmt.Errorf("%w: no route to %v from %v through %s (%v)", verbs.ErrUnreachable, dest, source, t.Name(), err)}, nil
	case err != nil:
		return way{}, err
	}
	return w, nil
}

// owns reports which of the ends are addresses of the port.
func (t *Table) owns(ends Ends) (source, dest bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, source = t.own[ends.Source]
	_, dest = t.own[ends.Dest]
	return source, dest
}

// setWay changes a path to the result of a query. It returns the path's old hop if no other path uses that. The caller
// holds both locks.
func (t *Table) setWay(p *Path, w way) (unused *hop) {
	p.local, p.why = w.local, w.why
	p.mtu = 0
	if w.route.MTU != 0 {
		p.mtu = max(wire.MTUFor(w.route.MTU), wire.MTU256)
	}
	old := p.hop
	if old == w.hop {
		return nil
	}
	if p.hop = w.hop; p.hop != nil {
		p.hop.paths[p] = struct{}{}
	}
	for user := range p.payers {
		if old != nil {
			old.refund(user)
		}
		if p.hop != nil {
			p.hop.pay(user)
		}
	}
	if old != nil {
		delete(old.paths, p)
		if len(old.paths) == 0 {
			unused = old
		}
	}
	return unused
}

// showAll calls show for several paths, between two bursts.
func (t *Table) showAll(paths []*Path) {
	t.Engine.Do(func() {
		for _, p := range paths {
			t.show(p)
		}
	})
}

// show passes a path's current route and next hop to the engine. It runs in Do.
func (t *Table) show(p *Path) {
	a := datapath.PathAttr{FromMAC: t.mac, MTU: p.mtu}
	switch {
	case p.local:
		a.State = datapath.PathLocal
	case p.ends.Dest.IsMulticast():
		a.State, a.DestMAC = datapath.PathOpen, wire.MulticastMAC(p.ends.Dest)
	case p.hop == nil || p.hop.status.Failed:
		a.State = datapath.PathUnreachable
	case p.hop.status.Known:
		a.State, a.DestMAC = datapath.PathOpen, p.hop.status.MAC
	default:
		a.State = datapath.PathResolving
	}
	t.Engine.SetPath(p.entry, a)
}
