//go:build linux

package hca

import (
	"time"

	"github.com/roced/roced/datapath"
)

// use adds a user to a path. The caller holds card.mu.
func (card *Card) use(p *path) {
	if p.users == 0 && !p.idle.IsZero() && card.lingering > 0 {
		card.lingering--
	}
	p.idle = time.Time{}
	p.users++
}

// leavePath removes a user from a path. When it was the last, the path lingers or is freed.
func (card *Card) leavePath(p *path) {
	card.asking.Lock()
	defer card.asking.Unlock()
	var unused *hop
	card.locked(func() {
		if p.users--; p.users > 0 {
			return
		}
		if card.lingers(p) {
			p.idle = time.Now()
		} else {
			unused = card.freePath(p)
		}
	})
	card.dropHop(unused)
}

// A path whose destination is reachable is kept for a while after its last user has left. Otherwise
// a server that makes a handle for each answer would query the host each time.
const (
	pathLinger   = 5 * time.Second
	maxLingering = 1024 // paths
)

// lingers says whether a path without users is kept for a while.
func (card *Card) lingers(p *path) bool {
	if p.hop == nil || !p.hop.status.known || card.lingering == maxLingering || isClosed(card.stop) {
		return false
	}
	card.lingering++
	card.freeIdleLater()
	return true
}

// freeIdleLater has a timer call freeIdle, unless one is set already. The caller holds card.mu.
func (card *Card) freeIdleLater() {
	if !card.freeing {
		card.freeing = true
		time.AfterFunc(pathLinger, card.freeIdle)
	}
}

// freeIdle frees the paths that have lingered long enough.
func (card *Card) freeIdle() {
	card.asking.Lock()
	defer card.asking.Unlock()
	if isClosed(card.stop) {
		return // Close frees all
	}
	var left []*hop
	card.locked(func() {
		card.lingering, card.freeing = 0, false
		for _, p := range card.paths {
			switch {
			case p.users > 0:
			case time.Since(p.idle) >= pathLinger/2: // a younger one stays until the next call
				left = append(left, card.freePath(p))
			default:
				card.lingering++
			}
		}
		if card.lingering > 0 {
			card.freeIdleLater()
		}
	})
	for _, h := range left {
		card.dropHop(h)
	}
}

// freePath frees a path, unless it has users or packets wait on it. The caller holds card.asking and
// card.mu.
func (card *Card) freePath(p *path) (unused *hop) {
	waiting := 0
	card.engine.Do(func() { waiting = p.entry.Waiting() })
	if p.users > 0 || waiting > 0 || card.paths[p.ends] != p {
		return nil
	}
	p.idle = time.Time{}
	delete(card.paths, p.ends)
	return card.setWay(p, way{})
}

// settle sends posted requests, for closeTimeout at most. It asks for neighbours that have not
// answered yet itself, since keepUp has ended.
func (card *Card) settle(sessions []*Session) {
	end := time.Now().Add(closeTimeout)
	settle := func() {
		for _, s := range sessions {
			card.engine.Settle(s.entry, time.Until(end))
		}
	}
	settle()
	for held := 1; time.Now().Before(end); time.Sleep(settlePause) {
		if card.engine.Do(func() { held = card.engine.Held() }); held == 0 {
			break
		}
		_ = card.updateHops(card.hopsThat(func(*hop) bool { return true }), false)
	}
	settle()
}

// settlePause is the time between two looks for neighbours that settle waits for.
const settlePause = 2 * time.Millisecond

// abandonPaths has the engine drop the packets that wait for neighbours, and count them as
// unreachable. The card is being closed.
func (card *Card) abandonPaths() {
	card.asking.Lock()
	defer card.asking.Unlock()
	card.engine.Do(func() {
		for _, p := range card.paths {
			card.engine.SetPath(p.entry, datapath.PathAttr{State: datapath.PathUnreachable})
		}
	})
}
