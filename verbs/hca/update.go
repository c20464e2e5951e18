package hca

import (
	"errors"
	"maps"
	"slices"
)

// atOnce is how many paths or hops are looked at before others may ask, and how many change
// in one hold of the device's lock.
const atOnce = 64

// update looks at what has changed. While the link is down the host forgets routes and
// neighbours: what is known is kept, and looked at when the link is up.
func (d *Device) update(c changes) (cameUp bool, err error) {
	var moved portChange
	if c.port {
		if moved, err = d.updatePort(); err != nil {
			return false, err
		}
	}
	up := d.linkUp()
	c.allRoutes = c.allRoutes || moved.up
	c.allNeighbours = c.allNeighbours || moved.up
	err = moved.unsteered
	for paths := range slices.Chunk(d.pathsThat(func(p *path) bool {
		return moved.concerns(p) || up && c.concernsRoute(p.ends.dest.Addr())
	}), atOnce) {
		err = errors.Join(err, d.updateWays(paths))
	}
	if !up {
		return false, err
	}
	for hops := range slices.Chunk(d.hopsThat(func(h *hop) bool { return c.concernsNeighbour(h.address) }), atOnce) {
		err = errors.Join(err, d.updateHops(hops, moved.up))
	}
	return moved.up, err
}

func (d *Device) linkUp() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status.up
}

func (d *Device) wantsCarrier() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status.enabled && !d.status.up
}

func (d *Device) pathsThat(concern func(*path) bool) []*path { return chosen(d, d.paths, concern) }

func (d *Device) hopsThat(concern func(*hop) bool) []*hop { return chosen(d, d.hops, concern) }

// chosen are the paths or hops that something concerns.
func chosen[K comparable, T any](d *Device, all map[K]T, concern func(T) bool) (list []T) {
	d.asking.Lock()
	defer d.asking.Unlock()
	for one := range maps.Values(all) {
		if concern(one) {
			list = append(list, one)
		}
	}
	return list
}

// updateWays looks paths up again.
func (d *Device) updateWays(paths []*path) (failed error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	found := map[*path]way{}
	for _, p := range paths {
		if d.paths[p.ends] != p {
			continue // gone meanwhile
		}
		w, err := d.lookUp(p.ends)
		if err != nil {
			failed = err
			continue
		}
		found[p] = w
	}
	for _, h := range d.moveWays(found) {
		d.dropHop(h)
	}
	return failed
}

// moveWays has paths lead where look-ups say, and gives the hops that they left.
func (d *Device) moveWays(found map[*path]way) (left []*hop) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lost := 0
	var example *path
	for p, w := range found {
		if w.why != nil && p.why == nil {
			lost, example = lost+1, p
		}
		if h := d.setWay(p, w); h != nil {
			left = append(left, h)
		}
	}
	d.showAll(slices.Collect(maps.Keys(found)))
	left = append(left, d.freeLeft(slices.Collect(maps.Keys(found)))...)
	d.reportLost(lost, example)
	return left
}

// updateHops looks at next hops. Those that the host has forgotten, or that have not answered
// when the link comes up, are asked for again.
func (d *Device) updateHops(hops []*hop, cameUp bool) (failed error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	found := map[*hop]hopStatus{}
	for _, h := range hops {
		if d.hops[h.address] != h {
			continue
		}
		status, err := d.host.neighbour(h.address)
		if err == nil && (status.absent || cameUp && !status.known) {
			if err = d.host.hold(h.address); err == nil {
				status, err = d.host.neighbour(h.address)
			}
		}
		if err != nil {
			failed = err
			continue
		}
		found[h] = status
	}
	for _, h := range d.moveHops(found) {
		d.dropHop(h)
	}
	return failed
}

// moveHops takes over what is known of hops now, and gives those that are not used any more.
func (d *Device) moveHops(found map[*hop]hopStatus) (left []*hop) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var changed []*hop
	for h, status := range found {
		was := h.status
		h.setStatus(status)
		if was.known != h.status.known || was.failed != h.status.failed || was.mac != h.status.mac {
			changed = append(changed, h)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	paths := pathsOver(changed...)
	d.showAll(paths)
	one := changed[0]
	d.log.Info("neighbours changed", "device", d.name, "count", len(changed), "paths", len(paths),
		"one", one.address, "mac", one.status.mac, "answers", !one.status.failed)
	return d.freeLeft(paths)
}

// freeLeft forgets those of the paths on which packets waited that nobody else waits for.
func (d *Device) freeLeft(paths []*path) (left []*hop) {
	for _, p := range paths {
		if p.users > 0 || !p.idle.IsZero() && p.why == nil {
			continue
		}
		if h := d.freePath(p); h != nil {
			left = append(left, h)
		}
	}
	return left
}

// reportLost logs when destinations become unreachable, and when the last of them is reachable
// again. The caller holds d.mu.
func (d *Device) reportLost(lost int, example *path) {
	if lost > 0 && d.unreachable == 0 {
		d.log.Warn("destinations are unreachable for now", "device", d.name, "count", lost, "one", example.ends.dest, "error", example.why)
	}
	was := d.unreachable
	d.unreachable = 0
	for _, p := range d.paths {
		if p.why != nil && p.users > 0 {
			d.unreachable++
		}
	}
	if was > 0 && d.unreachable == 0 {
		d.log.Info("all destinations are reachable again", "device", d.name)
	}
}
