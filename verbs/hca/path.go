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

// path is the way from one of the device's addresses to a destination, for all address handles
// that lead there. A path is followed: its route, its next hop.
//
// Questions to the host are asked without Device.mu, under Device.asking, one at a time,
// so that an answer is acted on before the next question. A path is changed under both.
type path struct {
	ends  pair
	users int       // address handles
	idle  time.Time // since when it has none, if it lingers
	local bool
	hop   *hop  // nil for a group, a local destination, or without a route
	why   error // there is no route
	mtu   wire.MTU
	hot   *datapath.Path
}

// way is what a look-up found.
type way struct {
	local bool
	route host.Route
	hop   *hop
	why   error
}

// lookUp asks the host for the way between two ends. The caller holds d.asking, not d.mu. An
// error says that the question failed, and that what was known stays.
func (d *Device) lookUp(ends pair) (w way, err error) {
	ours, local := d.hasGIDs(ends)
	switch {
	case local || ends.dest.IsMulticast():
		return way{local: local}, nil
	case !ours:
		return way{why: fmt.Errorf("%w: %v, which packets are sent from, is no address of %s now", verbs.ErrNoGID, ends.source, d.name)}, nil
	}
	source, dest := ends.source.Addr(), ends.dest.Addr()
	w.route, err = d.host.route(source, dest)
	switch {
	case errors.Is(err, host.ErrLocal):
		return way{why: fmt.Errorf("%w: %v is an address of this host, but not of %s: devices of one host do not reach each other; send from the device that has it",
			verbs.ErrUnreachable, dest, d.name)}, nil
	case errors.Is(err, host.ErrNoRoute):
		return way{why: fmt.Errorf("%w: no route to %v from %v through %s (%v); ip route get %v oif %[4]s", verbs.ErrUnreachable, dest, source, d.name, err, dest)}, nil
	case err != nil:
		return way{}, err
	}
	w.hop, err = d.obtainHop(w.route.Hop)
	return w, err
}

// hasGIDs says whether the ends of a path are addresses of this device.
func (d *Device) hasGIDs(ends pair) (source, dest bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gids.contains(ends.source), d.gids.contains(ends.dest)
}

// takePath gives the path between two ends, made if there was none, with one user more.
func (d *Device) takePath(ends pair) (*path, error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	p := d.paths[ends]
	if p != nil && p.why == nil && (p.hop == nil || !p.hop.status.failed) {
		d.mu.Lock()
		d.use(p)
		d.mu.Unlock()
		return p, nil
	}
	w, err := d.lookUp(ends)
	if err != nil {
		return nil, err
	}
	if w.hop != nil && w.hop.status.failed {
		if err := d.askFor(w.hop); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	if p == nil {
		p = &path{ends: ends, hot: new(datapath.Path)}
		d.paths[ends] = p
	}
	d.use(p)
	unused := d.setWay(p, w)
	d.showAll(append(pathsOver(w.hop), p))
	d.mu.Unlock()
	d.dropHop(unused)
	return p, nil
}

// setWay has a path lead where a look-up says, and gives the hop that it left, if nobody
// else uses that. The caller holds d.asking and d.mu.
func (d *Device) setWay(p *path, w way) (unused *hop) {
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

// showAll is show for several, between two bursts.
func (d *Device) showAll(paths []*path) {
	d.engine.Do(func() {
		for _, p := range paths {
			d.show(p)
		}
	})
}

// show has the engine send the way that a path leads now. It runs in Do.
func (d *Device) show(p *path) {
	w := datapath.Way{FromMAC: d.status.mac, MTU: p.mtu}
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
	d.engine.SetPath(p.hot, w)
}
