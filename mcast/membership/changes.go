package membership

import (
	"net/netip"
	"sync"

	"github.com/roced/roced/internal/host"
)

// pendingChanges gathers what has changed on the host until the next look, so that many changes
// cost one look. It is a host.Changes. What it keeps is limited: beyond that, everything is looked
// at.
type pendingChanges struct {
	mu    sync.Mutex
	noted changes
	ready chan struct{} // of capacity 1
}

// changes says what to look at.
type changes struct {
	port      bool                         // the interface, its addresses and groups
	allRoutes bool                         // the local routes of all groups' addresses
	routes    map[host.LocalRoute]struct{} // local routes that may have come back
}

// everything says to look at everything.
func everything() changes { return changes{port: true, allRoutes: true} }

// maxRouteChanges is far more than the kernel's default limit of addresses with autojoin.
const maxRouteChanges = 1024

// note adds to what is to be looked at, and wakes keepUp.
func (p *pendingChanges) note(note func(c *changes)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note(&p.noted)
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// take returns what was noted, and clears it.
func (p *pendingChanges) take() changes {
	p.mu.Lock()
	defer p.mu.Unlock()
	noted := p.noted
	p.noted = changes{}
	return noted
}

// Port implements host.Changes.
func (p *pendingChanges) Port() { p.note(func(c *changes) { c.port = true }) }

// Missed implements host.Changes.
func (p *pendingChanges) Missed() { p.note(func(c *changes) { *c = everything() }) }

// Route implements host.Changes. Only local routes of groups' addresses matter.
func (p *pendingChanges) Route(dest netip.Prefix, table int) {
	if !dest.IsSingleIP() || !dest.Addr().Is4() || !dest.Addr().IsMulticast() {
		return
	}
	p.note(func(c *changes) {
		if c.routes == nil {
			c.routes = map[host.LocalRoute]struct{}{}
		}
		c.routes[host.LocalRoute{Dest: dest.Addr(), Table: table}] = struct{}{}
		if len(c.routes) > maxRouteChanges {
			c.allRoutes, c.routes = true, nil
		}
	})
}

// Routes implements host.Changes.
func (p *pendingChanges) Routes() {}

// Neighbour implements host.Changes.
func (p *pendingChanges) Neighbour(netip.Addr) {}
