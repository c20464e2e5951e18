// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"

	"github.com/roced/roced/internal/host"
)

// pendingChanges collects changes of the host until they are processed. It implements host.Changes.
type pendingChanges struct{ host.Pending[changes] }

func newPendingChanges() *pendingChanges { return &pendingChanges{host.NewPending[changes]()} }

// changes is the part of the state to check.
type changes struct {
	port      bool                         // the interface, its addresses and groups
	allRoutes bool                         // the local routes of all groups' addresses
	routes    map[host.LocalRoute]struct{} // local routes that may exist again
}

// everything selects the complete state.
func everything() changes { return changes{port: true, allRoutes: true} }

// maxRouteChanges is far more than the kernel's default limit of addresses with autojoin.
const maxRouteChanges = 1024

// Port implements host.Changes.
func (p *pendingChanges) Port() { p.Note(func(c *changes) { c.port = true }) }

// Missed implements host.Changes.
func (p *pendingChanges) Missed() { p.Note(func(c *changes) { *c = everything() }) }

// Route implements host.Changes. Only local routes of groups' addresses matter.
func (p *pendingChanges) Route(dest netip.Prefix, table int) {
	if !dest.IsSingleIP() || !dest.Addr().Is4() || !dest.Addr().IsMulticast() {
		return
	}
	p.Note(func(c *changes) {
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
