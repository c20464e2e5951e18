//go:build linux

package hca

import (
	"net/netip"

	"github.com/roced/roced/internal/host"
)

// pendingChanges gathers what has changed around a card until the card looks. It is a host.Changes.
type pendingChanges struct{ host.Pending[changes] }

func newPendingChanges() *pendingChanges { return &pendingChanges{host.NewPending[changes]()} }

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

// Port implements host.Changes.
func (p *pendingChanges) Port() { p.Note(func(c *changes) { c.port = true }) }

// Routes implements host.Changes.
func (p *pendingChanges) Routes() { p.Note(func(c *changes) { c.allRoutes = true }) }

// Missed implements host.Changes.
func (p *pendingChanges) Missed() { p.Note(func(c *changes) { *c = everything() }) }

// Route implements host.Changes. Groups have no routes; which table it was does not matter, since the
// route is asked for again.
func (p *pendingChanges) Route(dest netip.Prefix, _ int) {
	if dest.Bits() > 0 && dest.Addr().IsMulticast() {
		return
	}
	p.Note(func(c *changes) {
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
	p.Note(func(c *changes) {
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
