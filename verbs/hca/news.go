package hca

import (
	"net/netip"
	"sync"
)

// news gathers what has changed around a device until it looks, so that many changes cost
// one look. It is a host.News. What it gathers has a limit: beyond, all is looked at.
type news struct {
	mu    sync.Mutex
	told  changes
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
	maxRouteNews     = 64
	maxNeighbourNews = 4096
)

// note changes what is to be looked at, and wakes who looks.
func (n *news) note(note func(c *changes)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note(&n.told)
	select {
	case n.ready <- struct{}{}:
	default:
	}
}

// take gives all that was noted, and starts anew.
func (n *news) take() changes {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := n.told
	n.told = changes{}
	return told
}

// Port implements host.News.
func (n *news) Port() { n.note(func(c *changes) { c.port = true }) }

// Routes implements host.News.
func (n *news) Routes() { n.note(func(c *changes) { c.allRoutes = true }) }

// Missed implements host.News.
func (n *news) Missed() { n.note(func(c *changes) { *c = everything() }) }

// Route implements host.News. Groups have no routes.
func (n *news) Route(dest netip.Prefix) {
	if dest.Bits() > 0 && dest.Addr().IsMulticast() {
		return
	}
	n.note(func(c *changes) {
		if c.routes == nil {
			c.routes = map[netip.Prefix]struct{}{}
		}
		c.routes[dest] = struct{}{}
		if len(c.routes) > maxRouteNews {
			c.allRoutes, c.routes = true, nil
		}
	})
}

// Neighbour implements host.News.
func (n *news) Neighbour(address netip.Addr) {
	n.note(func(c *changes) {
		if c.neighbours == nil {
			c.neighbours = map[netip.Addr]struct{}{}
		}
		c.neighbours[address] = struct{}{}
		if len(c.neighbours) > maxNeighbourNews {
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
	_, told := c.neighbours[address]
	return told || c.allNeighbours
}
