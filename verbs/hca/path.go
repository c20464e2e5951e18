//go:build linux

package hca

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
)

// pair is the two ends of a path.
type pair struct{ source, dest wire.GID }

// path is the route and next hop from one of the card's addresses to a destination, for all address
// handles with these ends. The card follows changes of both.
//
// Card.asking is held for a query of the host, without Card.mu, and until the answer is acted on.
// A path is changed under both locks.
type path struct {
	ends  pair
	users int       // address handles
	idle  time.Time // when its last user left, if it lingers
	local bool
	hop   *hop  // nil for a group or a local destination, and if there is no route
	why   error // why there is no route
	mtu   wire.MTU
	entry *datapath.Path // the engine's part of it
}

// way is the result of a look-up.
type way struct {
	local bool
	route host.Route
	hop   *hop
	why   error
}

// lookUp asks the host for the route between two ends. The caller holds card.asking, not card.mu. An
// error means that the host could not be asked; the path then stays as it was.
func (card *Card) lookUp(ends pair) (w way, err error) {
	ours, local := card.hasGIDs(ends)
	switch {
	case local || ends.dest.IsMulticast():
		return way{local: local}, nil
	case !ours:
		return way{why: fmt.Errorf("%w: %s does not have the source address %v any more", verbs.ErrNoGID, card.Name(), ends.source)}, nil
	}
	source, dest := ends.source.Addr(), ends.dest.Addr()
	w.route, err = card.host.route(source, dest)
	switch {
	case errors.Is(err, host.ErrLocal):
		return way{why: fmt.Errorf("%w: %v is an address of this host, but not of %s: devices of one host do not reach each other; send from the device that has it",
			verbs.ErrUnreachable, dest, card.Name())}, nil
	case errors.Is(err, host.ErrNoRoute):
		return way{why: fmt.Errorf("%w: no route to %v from %v through %s (%v); ip route get %v oif %[4]s", verbs.ErrUnreachable, dest, source, card.Name(), err, dest)}, nil
	case err != nil:
		return way{}, err
	}
	w.hop, err = card.obtainHop(w.route.Hop)
	return w, err
}

// hasGIDs says whether the ends of a path are addresses of this card.
func (card *Card) hasGIDs(ends pair) (source, dest bool) {
	card.mu.Lock()
	defer card.mu.Unlock()
	return card.gids.contains(ends.source), card.gids.contains(ends.dest)
}

// takePath finds or makes the path between two ends, and adds a user to it.
func (card *Card) takePath(ends pair) (*path, error) {
	card.asking.Lock()
	defer card.asking.Unlock()
	p := card.paths[ends]
	if p != nil && p.why == nil && (p.hop == nil || !p.hop.status.failed) {
		card.mu.Lock()
		card.use(p)
		card.mu.Unlock()
		return p, nil
	}
	w, err := card.lookUp(ends)
	if err != nil {
		return nil, err
	}
	if w.hop != nil && w.hop.status.failed {
		if err := card.askFor(w.hop); err != nil {
			return nil, err
		}
	}
	var unused *hop
	card.locked(func() {
		if p == nil {
			p = &path{ends: ends, entry: new(datapath.Path)}
			card.paths[ends] = p
		}
		card.use(p)
		unused = card.setWay(p, w)
		card.showAll(append(pathsOver(w.hop), p))
	})
	card.dropHop(unused)
	return p, nil
}

// setWay changes a path to the result of a look-up. It gives the path's old hop if no other path
// uses that. The caller holds card.asking and card.mu.
func (card *Card) setWay(p *path, w way) (unused *hop) {
	p.local, p.why = w.local, w.why
	p.mtu = 0
	if w.route.MTU != 0 {
		p.mtu = max(wire.MTUFor(w.route.MTU), wire.MTU256)
	}
	if old := p.hop; old != nil && old != w.hop {
		delete(old.paths, p)
		if len(old.paths) == 0 {
			unused = old
		}
	}
	p.hop = w.hop
	if p.hop != nil {
		p.hop.paths[p] = struct{}{}
	}
	return unused
}

// showAll calls show for several paths, between two bursts.
func (card *Card) showAll(paths []*path) {
	card.engine.Do(func() {
		for _, p := range paths {
			card.show(p)
		}
	})
}

// show gives a path's present route and next hop to the engine. It runs in Do.
func (card *Card) show(p *path) {
	w := datapath.PathAttr{FromMAC: card.status.mac, MTU: p.mtu}
	switch {
	case p.local:
		w.State = datapath.PathLocal
	case p.ends.dest.IsMulticast():
		w.State, w.DestMAC = datapath.PathOpen, wire.MulticastMAC(p.ends.dest)
	case p.hop == nil || p.hop.status.failed:
		w.State = datapath.PathUnreachable
	case p.hop.status.known:
		w.State, w.DestMAC = datapath.PathOpen, p.hop.status.mac
	default:
		w.State = datapath.PathResolving
	}
	card.engine.SetPath(p.entry, w)
}
