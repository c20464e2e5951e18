// SPDX-License-Identifier: Apache-2.0

package paths

import "net/netip"

// Changes collects the routes and neighbours to query. Its size is limited: beyond that it stands for all. The zero
// value is empty.
type Changes struct {
	AllRoutes     bool
	AllNeighbours bool
	routes        map[netip.Prefix]struct{}
	neighbours    map[netip.Addr]struct{}
}

const (
	maxRouteChanges     = 64
	maxNeighbourChanges = 4096
)

// AddRoute notes that routes to a destination may have changed.
func (c *Changes) AddRoute(dest netip.Prefix) {
	if c.routes == nil {
		c.routes = map[netip.Prefix]struct{}{}
	}
	c.routes[dest] = struct{}{}
	if len(c.routes) > maxRouteChanges {
		c.AllRoutes, c.routes = true, nil
	}
}

// AddNeighbour notes that a neighbour may have changed.
func (c *Changes) AddNeighbour(address netip.Addr) {
	if c.neighbours == nil {
		c.neighbours = map[netip.Addr]struct{}{}
	}
	c.neighbours[address] = struct{}{}
	if len(c.neighbours) > maxNeighbourChanges {
		c.AllNeighbours, c.neighbours = true, nil
	}
}

// concernsRoute reports whether the route to a destination must be queried again.
func (c *Changes) concernsRoute(dest netip.Addr) bool {
	if c.AllRoutes {
		return true
	}
	for prefix := range c.routes {
		if prefix.Contains(dest) {
			return true
		}
	}
	return false
}

// concernsNeighbour reports whether a neighbour must be queried.
func (c *Changes) concernsNeighbour(address netip.Addr) bool {
	_, changed := c.neighbours[address]
	return changed || c.AllNeighbours
}
