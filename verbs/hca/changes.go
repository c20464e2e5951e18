package hca

import (
	"net/netip"
	"sync"
)

// pendingChanges gathers what has changed around a card until the card looks: many changes cost
// one look. It is a host.Changes. What it keeps is limited: beyond that, everything is looked at.
type pendingChanges struct {
	mu    sync.Mutex
	noted changes
	ready chan struct{} // of capacity 1
}

// changes are what is to be looked at.
type changes struct {
	port          bool
	allRoutes     bool
	allNeighbours bool
	routes        map[netip.Prefix]struct{}
	neighbours    map[netip.Addr]struct{}
}

// everything is what there is to look at.
func everything() changes { return changes{port: true, allRoutes: true, allNeighbours: true} }

const (
	maxRouteChanges     = 64
	maxNeighbourChanges = 4096
)

// note changes what is to be looked at, and wakes who looks.
func (p *pendingChanges) note(note func(c *changes)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note(&p.noted)
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// take gives all that was noted, and starts anew.
func (p *pendingChanges) take() changes {
	p.mu.Lock()
	defer p.mu.Unlock()
	noted := p.noted
	p.noted = changes{}
	return noted
}

// Port implements host.Changes.
func (p *pendingChanges) Port() { p.note(func(c *changes) { c.port = true }) }

// Routes implements host.Changes.
func (p *pendingChanges) Routes() { p.note(func(c *changes) { c.allRoutes = true }) }

// Missed implements host.Changes.
func (p *pendingChanges) Missed() { p.note(func(c *changes) { *c = everything() }) }

// Route implements host.Changes. Groups have no routes.
func (p *pendingChanges) Route(dest netip.Prefix) {
	if dest.Bits() > 0 && dest.Addr().IsMulticast() {
		return
	}
	p.note(func(c *changes) {
		if c.routes == nil {
			c.routes = map[netip.Prefix]struct{}{}
		}
		c.routes[dest] = struct{}{}
		if len(c.routes) > maxRouteChanges {
			c.allRoutes, c.routes = true, nil
		}
	})
}

// Neighbour implements host.Changes.
func (p *pendingChanges) Neighbour(address netip.Addr) {
	p.note(func(c *changes) {
		if c.neighbours == nil {
			c.neighbours = map[netip.Addr]struct{}{}
		}
		c.neighbours[address] = struct{}{}
		if len(c.neighbours) > maxNeighbourChanges {
			c.allNeighbours, c.neighbours = true, nil
		}
	})
}

// concernsRoute says whether the way to a destination is to be looked for again.
func (c *changes) concernsRoute(dest netip.Addr) bool {
	if c.allRoutes {
		return true
	}
	for prefix := range c.routes {
		if prefix.Contains(dest) {
			return true
		}
	}
	return false
}

// concernsNeighbour says whether a neighbour is to be looked at.
func (c *changes) concernsNeighbour(address netip.Addr) bool {
	_, changed := c.neighbours[address]
	return changed || c.allNeighbours
}
