// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"errors"
	"maps"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/hca/network"
)

// batchSize is the maximum number of paths or hops that are queried and changed in one hold of the table's locks.
const batchSize = 64

// Change describes a change around the card.
type Change struct {
	Changes
	GIDs map[wire.GID]struct{} // added or removed addresses
	// Up is set while the link is up. While it is down, the host forgets routes and neighbours; the table keeps them,
	// and queries them when the link comes up (CameUp).
	Up, CameUp bool
}

// concerns reports whether a path must be queried again.
func (c *Change) concerns(p *Path) bool {
	_, source := c.GIDs[p.ends.Source]
	_, dest := c.GIDs[p.ends.Dest]
	return source || dest || c.Up && c.concernsRoute(p.ends.Dest.Addr())
}

// Update queries again the state that a change concerns. State that could not be queried stays unchanged, and the error
// reports it.
func (t *Table) Update(c Change) (failed error) {
	if c.CameUp {
		c.AllRoutes, c.AllNeighbours = true, true
	}
	for paths := range slices.Chunk(chosen(t, t.paths, c.concerns), batchSize) {
		failed = errors.Join(failed, t.updateWays(paths))
	}
	if !c.Up {
		return failed
	}
	concerns := func(h *hop) bool { return c.concernsNeighbour(h.address) }
	return errors.Join(failed, t.updateHops(concerns, c.CameUp))
}

// AskHops queries all next hops. After the link came up it repeats the queries of those that have not responded.
func (t *Table) AskHops(cameUp bool) error {
	return t.updateHops(func(*hop) bool { return true }, cameUp)
}

func (t *Table) updateHops(concerns func(*hop) bool, cameUp bool) (failed error) {
	for hops := range slices.Chunk(chosen(t, t.hops, concerns), batchSize) {
		failed = errors.Join(failed, t.lookAtHops(hops, cameUp))
	}
	return failed
}

// chosen returns the paths or hops that a change concerns.
func chosen[K comparable, T any](t *Table, all map[K]T, concerns func(T) bool) (list []T) {
	t.asking.Lock()
	defer t.asking.Unlock()
	for one := range maps.Values(all) {
		if concerns(one) {
			list = append(list, one)
		}
	}
	return list
}

// updateWays queries the routes of paths again.
func (t *Table) updateWays(paths []*Path) (failed error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	found := map[*Path]way{}
	for _, p := range paths {
		if t.paths[p.ends] != p {
			continue // it was freed meanwhile
		}
		w, err := t.lookUp(p.ends, nil)
		if err != nil {
			failed = err
			continue
		}
		found[p] = w
	}
	for _, h := range t.moveWays(found) {
		t.dropHop(h)
	}
	return failed
}

// moveWays changes paths to the results of queries, and returns the hops that became unused.
func (t *Table) moveWays(found map[*Path]way) (left []*hop) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lost := 0
	var example Ends
	var why error
	for p, w := range found {
		if w.why != nil && p.why == nil {
			lost, example, why = lost+1, p.ends, w.why
		}
		if h := t.setWay(p, w); h != nil {
			left = append(left, h)
		}
	}
	t.showAll(slices.Collect(maps.Keys(found)))
	left = append(left, t.freeUnused(slices.Collect(maps.Keys(found)))...)
	t.reportLost(lost, example, why)
	return left
}

// lookAtHops queries next hops. It makes the host query again those that it has forgotten, and, when the link came up,
// those that have not responded.
func (t *Table) lookAtHops(hops []*hop, cameUp bool) (failed error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	found := map[*hop]network.Neighbour{}
	for _, h := range hops {
		if t.hops[h.address] != h {
			continue
		}
		status, err := t.Host.Neighbour(h.address)
		if err == nil && (status.Absent || cameUp && !status.Known) {
			if err = t.Host.Hold(h.address); err == nil {
				status, err = t.Host.Neighbour(h.address)
			}
		}
		if err != nil {
			failed = err
			continue
		}
		found[h] = status
	}
	for _, h := range t.moveHops(found) {
		t.dropHop(h)
	}
	return failed
}

// moveHops stores the current entries of hops, and returns those that became unused.
func (t *Table) moveHops(found map[*hop]network.Neighbour) (left []*hop) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var changed []*hop
	for h, status := range found {
		was := h.status
		h.setStatus(status)
		if was.Known != h.status.Known || was.Failed != h.status.Failed || was.MAC != h.status.MAC {
			changed = append(changed, h)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	paths := pathsOver(changed...)
	t.showAll(paths)
	one := changed[0]
	t.Log.Info("neighbours changed", "device", t.Name(), "count", len(changed), "paths", len(paths),
		"one", one.address, "mac", one.status.MAC, "answers", !one.status.Failed)
	return t.freeUnused(paths)
}

// reportLost logs when destinations become unreachable, and when the last of them is reachable again.
func (t *Table) reportLost(lost int, example Ends, why error) {
	if lost > 0 && t.unreachable == 0 {
		t.Log.Warn("destinations are unreachable for now", "device", t.Name(), "count", lost, "one", example.Dest, "error", why)
	}
	was := t.unreachable
	t.unreachable = 0
	for _, p := range t.paths {
		if p.why != nil && p.users > 0 {
			t.unreachable++
		}
	}
	if was > 0 && t.unreachable == 0 {
		t.Log.Info("all destinations are reachable again", "device", t.Name())
	}
}
