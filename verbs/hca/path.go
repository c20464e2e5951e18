package hca

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
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

// hop is a neighbour that paths lead over.
type hop struct {
	address netip.Addr
	status  hopStatus
	paths   map[*path]struct{}
	settled chan struct{} // closed when it has answered, or failed
}

// unanswered says that it is still being asked for.
func (h *hop) unanswered() bool { return !h.status.known && !h.status.failed }

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

// obtainHop finds the hop of an address, or makes one, which is asked for then. The caller
// holds d.asking.
func (d *Device) obtainHop(address netip.Addr) (*hop, error) {
	if h := d.hops[address]; h != nil {
		return h, nil
	}
	h := &hop{address: address, paths: map[*path]struct{}{}, settled: make(chan struct{})}
	if err := d.askFor(h); err != nil {
		return nil, err
	}
	d.hops[address] = h
	return h, nil
}

// askFor has a hop looked for, and takes what is known of it already.
func (d *Device) askFor(h *hop) error {
	if err := d.host.hold(h.address); err != nil {
		return err
	}
	status, err := d.host.neighbour(h.address)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h.setStatus(status)
	return nil
}

// setStatus notes what is known of a hop, and wakes those that wait for it. While it is asked
// for again, what was known is good until the answer comes. The caller holds d.mu.
func (h *hop) setStatus(status hopStatus) {
	was := h.unanswered()
	if h.status.known && !status.known && !status.failed {
		status.mac, status.known = h.status.mac, true
	}
	h.status = status
	switch now := h.unanswered(); {
	case was && !now:
		close(h.settled)
	case now && !was:
		h.settled = make(chan struct{})
	}
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

// use adds a user to a path. The caller holds d.mu.
func (d *Device) use(p *path) {
	if p.users == 0 && !p.idle.IsZero() && d.lingering > 0 {
		d.lingering--
	}
	p.users++
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

// dropHop lets a hop go that no path leads over. The caller holds d.asking.
func (d *Device) dropHop(h *hop) {
	if h != nil && len(h.paths) == 0 {
		delete(d.hops, h.address)
		d.host.release(h.address)
	}
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

// leavePath takes a user from a path, and lets the path go when it was the last, and no packet
// waits on it.
func (d *Device) leavePath(p *path) {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.mu.Lock()
	var unused *hop
	if p.users--; p.users == 0 {
		if d.lingers(p) {
			p.idle = time.Now()
		} else {
			unused = d.freePath(p)
		}
	}
	d.mu.Unlock()
	d.dropHop(unused)
}

// A path that leads somewhere lingers when its last user has left: a server that makes a
// handle for each answer, and closes it, would have the host asked each time.
const (
	pathLinger   = 5 * time.Second
	maxLingering = 1024 // paths
)

// lingers says whether a path without users is kept for a while.
func (d *Device) lingers(p *path) bool {
	if p.hop == nil || !p.hop.status.known || d.lingering == maxLingering || isClosed(d.stop) {
		return false
	}
	if d.lingering == 0 {
		time.AfterFunc(pathLinger, d.freeIdle)
	}
	d.lingering++
	return true
}

// freeIdle forgets the paths that have lingered long enough.
func (d *Device) freeIdle() {
	d.asking.Lock()
	defer d.asking.Unlock()
	if isClosed(d.stop) {
		return // Close frees all
	}
	var left []*hop
	d.mu.Lock()
	d.lingering = 0
	for _, p := range d.paths {
		switch {
		case p.users > 0:
		case time.Since(p.idle) >= pathLinger/2: // in two strokes
			left = append(left, d.freePath(p))
		default:
			d.lingering++
		}
	}
	if d.lingering > 0 {
		time.AfterFunc(pathLinger, d.freeIdle)
	}
	d.mu.Unlock()
	for _, h := range left {
		d.dropHop(h)
	}
}

// freePath forgets a path that has no users. One on which packets wait stays until they have
// left. The caller holds d.asking and d.mu.
func (d *Device) freePath(p *path) (unused *hop) {
	waiting := 0
	d.engine.Do(func() { waiting = p.hot.Waiting() })
	if p.users > 0 || waiting > 0 || d.paths[p.ends] != p {
		return nil
	}
	p.idle = time.Time{}
	delete(d.paths, p.ends)
	return d.setWay(p, way{})
}

// settle sends what programs have posted, as far as that can be done within closePatience, also
// to neighbours that answer only now: nobody follows them any more.
func (d *Device) settle() {
	end := time.Now().Add(closePatience)
	d.engine.Settle(closePatience)
	for held := 1; time.Now().Before(end); time.Sleep(settlePause) {
		if d.engine.Do(func() { held = d.engine.Held() }); held == 0 {
			break
		}
		_ = d.updateHops(d.hopsThat(func(*hop) bool { return true }), false)
	}
	d.engine.Settle(time.Until(end))
}

// settlePause is between two looks for neighbours that settle waits for.
const settlePause = 2 * time.Millisecond

// abandonPaths drops the packets that wait for neighbours, by name: the device is closed.
func (d *Device) abandonPaths() {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.engine.Do(func() {
		for _, p := range d.paths {
			d.engine.SetPath(p.hot, datapath.Way{State: datapath.PathUnreachable})
		}
	})
}

// pathsOver lists the paths that lead over hops.
func pathsOver(hops ...*hop) (all []*path) {
	for _, h := range hops {
		if h != nil {
			all = slices.AppendSeq(all, maps.Keys(h.paths))
		}
	}
	return all
}

// neighbourTimeout is how long a new address handle waits for its neighbour at most. The
// kernel asks three times, a second apart.
const neighbourTimeout = 4 * time.Second

// awaitPath waits until it is known whether packets can be sent on a path.
func (d *Device) awaitPath(ctx context.Context, p *path) error {
	timeout := time.NewTimer(neighbourTimeout)
	defer timeout.Stop()
	for expired := false; ; {
		d.mu.Lock()
		h, why := p.hop, p.why
		var status hopStatus
		var settled chan struct{}
		if h != nil {
			status, settled = h.status, h.settled
		}
		d.mu.Unlock()
		switch ended := d.Err(); {
		case ended != nil:
			return ended
		case h == nil || status.known:
			return why
		case status.failed || expired:
			return fmt.Errorf("%w: %v does not answer on %s%s; is it up, and in the same VLAN?",
				verbs.ErrUnreachable, h.address, d.name, onBehalf(h.address, p.ends.dest.Addr()))
		}
		select {
		case <-settled:
		case <-timeout.C:
			expired = true
		case <-d.done:
		case <-ctx.Done():
			return fmt.Errorf("%w: %v has not answered yet on %s: %w", verbs.ErrUnreachable, h.address, d.name, ctx.Err())
		}
	}
}

func onBehalf(hop, dest netip.Addr) string {
	if hop == dest {
		return ""
	}
	return fmt.Sprintf(", the next hop to %v", dest)
}
