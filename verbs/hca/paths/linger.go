// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"time"

	"github.com/roced/roced/verbs/hca/quota"
)

// use adds a use by a user to a path.
func (t *Table) use(p *Path, user *quota.Quota) {
	if p.lingers {
		t.lingering--
	}
	p.lingers = false
	p.users++
	p.addPayer(user)
	p.dropPayers()
}

// Leave removes a use by a user from a path. When it was the last, the path lingers or is freed.
func (t *Table) Leave(p *Path, user User) {
	t.asking.Lock()
	defer t.asking.Unlock()
	var unused *hop
	t.locked(func() {
		p.payers[user.Payer()]--
		if p.users--; p.users > 0 {
			p.dropPayers()
			return
		}
		p.left = time.Now()
		if p.lingers = t.lingers(p); !p.lingers {
			unused = t.free(p)
		}
	})
	t.dropHop(unused)
}

// A path with a reachable destination is kept for a while after its last user has left. Otherwise a server that creates
// a handle for each response would query the host each time.
const (
	pathLinger   = 5 * time.Second
	maxLingering = 1024 // paths
)

// lingers reports whether a path without users is kept for a while.
func (t *Table) lingers(p *Path) bool {
	if p.hop == nil || !p.hop.status.Known || t.lingering == maxLingering || t.closed {
		return false
	}
	t.lingering++
	t.freeIdleLater()
	return true
}

// freeIdleLater sets a timer for freeIdle, unless one is set already.
func (t *Table) freeIdleLater() {
	if !t.freeing {
		t.freeing = true
		time.AfterFunc(pathLinger, t.freeIdle)
	}
}

// freeIdle frees the paths that have lingered long enough.
func (t *Table) freeIdle() {
	t.asking.Lock()
	defer t.asking.Unlock()
	var left []*hop
	t.locked(func() {
		t.lingering, t.freeing = 0, false
		if t.closed {
			return // the table is closed
		}
		for _, p := range t.paths {
			switch {
			case p.users > 0:
			case !p.lingers || time.Since(p.left) >= pathLinger/2: // a younger path stays until the next call
				left = append(left, t.free(p))
			default:
				t.lingering++
			}
		}
		if t.lingering > 0 {
			t.freeIdleLater()
		}
	})
	for _, h := range left {
		t.dropHop(h)
	}
}

// free frees a path, unless it has users or packets wait on it. The caller holds both locks.
func (t *Table) free(p *Path) (unused *hop) {
	waiting := 0
	t.Engine.Do(func() { waiting = p.entry.Waiting() })
	if p.users > 0 || waiting > 0 || t.paths[p.ends] != p {
		return nil
	}
	p.lingers = false
	delete(t.paths, p.ends)
	return t.setWay(p, way{})
}

// freeUnused frees those of the paths that have no users, and do not linger or have lost their route.
func (t *Table) freeUnused(paths []*Path) (left []*hop) {
	for _, p := range paths {
		if p.users > 0 || p.lingers && p.why == nil {
			continue
		}
		if h := t.free(p); h != nil {
			left = append(left, h)
		}
	}
	return left
}
