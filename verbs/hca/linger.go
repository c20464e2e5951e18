package hca

import (
	"time"

	"github.com/roced/roced/datapath"
)

// use adds a user to a path. The caller holds d.mu.
func (d *Device) use(p *path) {
	if p.users == 0 && !p.idle.IsZero() && d.lingering > 0 {
		d.lingering--
	}
	p.idle = time.Time{}
	p.users++
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
	d.lingering++
	d.freeIdleLater()
	return true
}

// freeIdleLater has freeIdle run, once, however many paths come and go until then. The caller
// holds d.mu.
func (d *Device) freeIdleLater() {
	if !d.freeing {
		d.freeing = true
		time.AfterFunc(pathLinger, d.freeIdle)
	}
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
	d.lingering, d.freeing = 0, false
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
		d.freeIdleLater()
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
