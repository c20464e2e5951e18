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

// Table has the paths of a card. Its methods are safe for concurrent use. Those that may ask the host
// (Take, Leave, Update, AskHops) are called without a lock of the card's.
type Table struct {
	Config

	// asking is held from a query of the host until its answer is acted on.
	asking sync.Mutex
	paths  map[Ends]*Path
	hops   map[netip.Addr]*hop

	mu          sync.Mutex // for what follows, and for what changes of paths and hops; after asking
	own         map[wire.GID]struct{}
	mac         wire.MAC
	lingering   int  // paths without users
	freeing     bool // a timer will call freeIdle
	unreachable int  // paths that have users but no route
	closed      bool
}

// Config is what a Table works with.
type Config struct {
	Host   network.Routes
	Engine Engine
	Name   func() string // the interface's now
	Log    *slog.Logger
	// Kept limits the next hops that the kernel keeps; nil if it keeps none.
	Kept *quota.Neighbours
}

// Engine is the part of *datapath.Engine that follows the paths.
type Engine interface {
	Do(change func())
	SetPath(*datapath.Path, datapath.PathAttr)
}

// NewTable makes a table without paths, of a port without addresses.
func NewTable(c Config) *Table {
	return &Table{Config: c, paths: map[Ends]*Path{}, hops: map[netip.Addr]*hop{}}
}

// SetPort says which addresses and which MAC the port has now. Update looks up what that concerns.
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

// Take finds or makes the path between two ends, and adds a user to it. It does not wait for the next hop's
// answer; Await does. The error is verbs.ErrLimit if too many next hops have not answered or are kept; any other
// means that the host could not be queried. That there is no route is no error here: Path.Err returns it, now and later.
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

// Close has the engine drop the packets that wait for neighbours, and count them as unreachable. It frees the paths that
// have no users. The card is being closed: from now on no path lingers.
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

// Info is a path, as commands that look show it.
type Info struct {
	Ends  Ends
	Users int
	Err   error
}

// List lists the paths, those that linger too.
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

// Held is how many next hops the host keeps for the table.
func (t *Table) Held() int {
	t.asking.Lock()
	defer t.asking.Unlock()
	return len(t.hops)
}

// locked runs a function under mu, which is free afterwards whatever the function does.
func (t *Table) locked(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do()
}
