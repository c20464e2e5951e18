//go:build linux

package hca

import (
	"errors"
	"maps"
	"slices"
)

// batchSize is how many paths or hops are looked up and changed in one hold of the card's locks.
const batchSize = 64

// update looks up what has changed. While the link is down the host forgets routes and neighbours;
// the card keeps them, and looks them up when the link comes up.
func (card *Card) update(c changes) (cameUp bool, err error) {
	var moved portChange
	if c.port {
		if moved, err = card.updatePort(); err != nil {
			return false, err
		}
	}
	up := card.linkUp()
	c.allRoutes = c.allRoutes || moved.up
	c.allNeighbours = c.allNeighbours || moved.up
	err = moved.unsteered
	for paths := range slices.Chunk(card.pathsThat(func(p *path) bool {
		return moved.concerns(p) || up && c.concernsRoute(p.ends.dest.Addr())
	}), batchSize) {
		err = errors.Join(err, card.updateWays(paths))
	}
	if !up {
		return false, err
	}
	for hops := range slices.Chunk(card.hopsThat(func(h *hop) bool { return c.concernsNeighbour(h.address) }), batchSize) {
		err = errors.Join(err, card.updateHops(hops, moved.up))
	}
	return moved.up, err
}

func (card *Card) linkUp() bool {
	card.mu.Lock()
	defer card.mu.Unlock()
	return card.status.up
}

func (card *Card) wantsCarrier() bool {
	card.mu.Lock()
	defer card.mu.Unlock()
	return card.status.enabled && !card.status.up && card.status.lost == nil
}

// lacksSocket reports whether a receive queue has no socket.
func (card *Card) lacksSocket() bool {
	card.mu.Lock()
	defer card.mu.Unlock()
	return card.status.lost != nil
}

func (card *Card) pathsThat(concern func(*path) bool) []*path {
	return chosen(card, card.paths, concern)
}

func (card *Card) hopsThat(concern func(*hop) bool) []*hop { return chosen(card, card.hops, concern) }

// chosen are the paths or hops that a change concerns.
func chosen[K comparable, T any](card *Card, all map[K]T, concern func(T) bool) (list []T) {
	card.asking.Lock()
	defer card.asking.Unlock()
	for one := range maps.Values(all) {
		if concern(one) {
			list = append(list, one)
		}
	}
	return list
}

// updateWays looks paths up again.
func (card *Card) updateWays(paths []*path) (failed error) {
	card.asking.Lock()
	defer card.asking.Unlock()
	found := map[*path]way{}
	for _, p := range paths {
		if card.paths[p.ends] != p {
			continue // it was freed meanwhile
		}
		w, err := card.lookUp(p.ends)
		if err != nil {
			failed = err
			continue
		}
		found[p] = w
	}
	for _, h := range card.moveWays(found) {
		card.dropHop(h)
	}
	return failed
}

// moveWays changes paths to the results of look-ups, and gives the hops that are not used any more.
func (card *Card) moveWays(found map[*path]way) (left []*hop) {
	card.mu.Lock()
	defer card.mu.Unlock()
	lost := 0
	var example pair
	var why error
	for p, w := range found {
		if w.why != nil && p.why == nil {
			lost, example, why = lost+1, p.ends, w.why
		}
		if h := card.setWay(p, w); h != nil {
			left = append(left, h)
		}
	}
	card.showAll(slices.Collect(maps.Keys(found)))
	left = append(left, card.freeUnused(slices.Collect(maps.Keys(found)))...)
	card.reportLost(lost, example, why)
	return left
}

// updateHops looks up next hops. It asks again for those that the host has forgotten, and, when the
// link came up, for those that have not answered.
func (card *Card) updateHops(hops []*hop, cameUp bool) (failed error) {
	card.asking.Lock()
	defer card.asking.Unlock()
	found := map[*hop]hopStatus{}
	for _, h := range hops {
		if card.hops[h.address] != h {
			continue
		}
		status, err := card.host.neighbour(h.address)
		if err == nil && (status.absent || cameUp && !status.known) {
			if err = card.host.hold(h.address); err == nil {
				status, err = card.host.neighbour(h.address)
			}
		}
		if err != nil {
			failed = err
			continue
		}
		found[h] = status
	}
	for _, h := range card.moveHops(found) {
		card.dropHop(h)
	}
	return failed
}

// moveHops stores what is known of hops now, and gives those that are not used any more.
func (card *Card) moveHops(found map[*hop]hopStatus) (left []*hop) {
	card.mu.Lock()
	defer card.mu.Unlock()
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
	card.showAll(paths)
	one := changed[0]
	card.log.Info("neighbours changed", "device", card.Name(), "count", len(changed), "paths", len(paths),
		"one", one.address, "mac", one.status.mac, "answers", !one.status.failed)
	return card.freeUnused(paths)
}

// freeUnused frees those of the paths that have no users, and do not linger or have lost their route.
func (card *Card) freeUnused(paths []*path) (left []*hop) {
	for _, p := range paths {
		if p.users > 0 || !p.idle.IsZero() && p.why == nil {
			continue
		}
		if h := card.freePath(p); h != nil {
			left = append(left, h)
		}
	}
	return left
}

// reportLost logs when destinations become unreachable, and when the last of them is reachable
// again. The caller holds card.mu.
func (card *Card) reportLost(lost int, example pair, why error) {
	if lost > 0 && card.unreachable == 0 {
		card.log.Warn("destinations are unreachable for now", "device", card.Name(), "count", lost, "one", example.dest, "error", why)
	}
	was := card.unreachable
	card.unreachable = 0
	for _, p := range card.paths {
		if p.why != nil && p.users > 0 {
			card.unreachable++
		}
	}
	if was > 0 && card.unreachable == 0 {
		card.log.Info("all destinations are reachable again", "device", card.Name())
	}
}
