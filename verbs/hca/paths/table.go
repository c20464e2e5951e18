// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/quota"
)

// Table has the paths of a card. Its methods are safe for concurrent use. Those that may query the host (Take, Leave,
// Update, AskHops) are called without a lock of the card.
type Table struct {
	Config

	// asking is held from a query of the host until its result is applied.
	asking sync.Mutex
	paths  map[Ends]*Path
	hops   map[netip.Addr]*hop

	mu          sync.Mutex // for the fields below, and for changes of paths and hops; after asking
	own         map[wire.GID]struct{}
	mac         wire.MAC
	lingering   int  // paths without users
	freeing     bool // a timer for freeIdle is set
	unreachable int  // paths with users but without a route
	closed      bool
}

// Config has the parts that a Table uses.
type Config struct {
	Host   network.Routes
	Engine Engine
	Name   func() string // current name of the interface
	Log    *slog.Logger
	// Kept limits the next hops that the kernel keeps; nil if it keeps none.
	Kept *quota.Neighbours
}

// Engine is the part of *datapath.Engine that follows the paths.
type Engine interface {
	Do(change func())
	SetPath(*datapath.Path, datapath.PathAttr)
}

// NewTable creates a table without paths, for a port without addresses.
func NewTable(c Config) *Table {
	return &Table{Config: c, paths: map[Ends]*Path{}, hops: map[netip.Addr]*hop{}}
}

// SetPort sets the current addresses and MAC of the port. Update queries the paths that this concerns.
func (t *Table) SetPort(mac wire.MAC, addresses []wire.GID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = make(map[wire.GID]struct{}, len(addresses))
	for _, gid := range addresses {
		t.own[gid] = struct{}{}
	}
	if t.mac == mac {
		return
	}
	t.mac = mac
	t.Engine.Do(func() {
		for _, p := range t.paths {
			t.show(p)
		}
	})
}

// Take finds or creates the path between two ends, and adds a user to it. It does not wait for the next hop's response;
// Await does. The error is verbs.ErrLimit if too many next hops have not responded or are kept; any other means that
// the host could not be queried. A missing route is not an error here: Path.Err returns it, now and later.
func (t *Table) Take(ends Ends, user User) (*Path, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	for {
		p, err := t.take(ends, user.Payer())
		if !errors.Is(err, verbs.ErrLimit) || !t.makeRoom(user.Payer(), err) {
			return p, err
		}
	}
}

// take is Take without making room.
func (t *Table) take(ends Ends, user *quota.Quota) (*Path, error) {
	p := t.paths[ends]
	if p != nil && p.why == nil && (p.hop == nil || !p.hop.status.Failed) {
		return p, t.share(p, user)
	}
	w, err := t.lookUp(ends, user)
	if err != nil {
		return nil, err
	}
	defer giveBack(user, w.reserved)
	if w.hop != nil && w.hop.status.Failed {
		if err := t.askFor(w.hop); err != nil {
			t.dropHop(w.hop) // if it is a new one
			return nil, err
		}
	}
	var unused *hop
	t.locked(func() {
		if p == nil {
			p = &Path{table: t, ends: ends, entry: new(datapath.Path), payers: map[*quota.Quota]int{}}
			t.paths[ends] = p
		}
		unused = t.setWay(p, w)
		t.use(p, user)
		t.showAll(append(pathsOver(w.hop), p))
	})
	t.dropHop(unused)
	return p, nil
}

// share adds a use by a user to a path whose route is known.
func (t *Table) share(p *Path, user *quota.Quota) error {
	reserved := false
	if p.hop != nil {
		var err error
		if reserved, err = t.reserve(p.hop, user); err != nil {
			return err
		}
	}
	t.locked(func() { t.use(p, user) })
	giveBack(user, reserved)
	return nil
}

// Close makes the engine drop the packets that wait for neighbours, and count them as unreachable. It frees the paths
// without users. The card is being closed: from now on no path lingers.
func (t *Table) Close() {
	t.asking.Lock()
	defer t.asking.Unlock()
	var unused []*hop
	t.locked(func() {
		t.closed = true
		t.Engine.Do(func() {
			for _, p := range t.paths {
				t.Engine.SetPath(p.entry, datapath.PathAttr{State: datapath.PathUnreachable})
			}
		})
		for _, p := range t.paths {
			unused = append(unused, t.free(p))
		}
	})
	for _, h := range unused {
		t.dropHop(h)
	}
}

// Info describes a path, for inspection.
type Info struct {
	Ends  Ends
	Users int
	Err   error
}

// List returns the paths, including lingering ones.
func (t *Table) List() (list []Info) {
	t.asking.Lock()
	defer t.asking.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.paths {
		list = append(list, Info{p.ends, p.users, p.why})
	}
	return list
}

// Held returns the number of next hops that the host keeps for the table.
func (t *Table) Held() int {
	t.asking.Lock()
	defer t.asking.Unlock()
	return len(t.hops)
}

// locked calls a function under mu, which is released even if the function panics.
func (t *Table) locked(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do()
}
