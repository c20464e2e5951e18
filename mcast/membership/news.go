package membership

import (
	"net/netip"
	"sync"

	"github.com/roced/roced/internal/host"
)

// news gathers what has changed on the host until it is looked at, so that many changes cost one
// look. It is a host.News. What it gathers has a limit: beyond, all is looked at.
type news struct {
	mu    sync.Mutex
	told  changes
	ready chan struct{} // of capacity 1
}

// changes are what is to be looked at.
type changes struct {
	port      bool                         // the interface, its addresses and groups
	allRoutes bool                         // the local routes of all groups' addresses
	routes    map[host.LocalRoute]struct{} // those that may be there again
}

// everything is what there is to look at.
func everything() changes { return changes{port: true, allRoutes: true} }

// maxRouteNews is far more than the kernel as it is shipped lets groups have addresses.
const maxRouteNews = 1024

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

// Missed implements host.News.
func (n *news) Missed() { n.note(func(c *changes) { *c = everything() }) }

// Route implements host.News. The local route of a group's address is of interest alone.
func (n *news) Route(dest netip.Prefix, table int) {
	if !dest.IsSingleIP() || !dest.Addr().Is4() || !dest.Addr().IsMulticast() {
		return
	}
	n.note(func(c *changes) {
		if c.routes == nil {
			c.routes = map[host.LocalRoute]struct{}{}
		}
		c.routes[host.LocalRoute{Dest: dest.Addr(), Table: table}] = struct{}{}
		if len(c.routes) > maxRouteNews {
			c.allRoutes, c.routes = true, nil
		}
	})
}

// Routes implements host.News.
func (n *news) Routes() {}

// Neighbour implements host.News.
func (n *news) Neighbour(netip.Addr) {}
