//go:build linux

package hca

import (
	"net/netip"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca/paths"
)

// pendingChanges gathers what has changed around a card until the card looks. It is a host.Changes.
type pendingChanges struct{ host.Pending[changes] }

func newPendingChanges() *pendingChanges { return &pendingChanges{host.NewPending[changes]()} }

// changes are what is to be looked at.
type changes struct {
	port bool
	paths.Changes
}

// everything is what there is to look at.
func everything() changes {
	return changes{true, paths.Changes{AllRoutes: true, AllNeighbours: true}}
}

// Port implements host.Changes.
func (p *pendingChanges) Port() { p.Note(func(c *changes) { c.port = true }) }

// Routes implements host.Changes.
func (p *pendingChanges) Routes() { p.Note(func(c *changes) { c.AllRoutes = true }) }

// Missed implements host.Changes.
func (p *pendingChanges) Missed() { p.Note(func(c *changes) { *c = everything() }) }

// Route implements host.Changes. Groups have no routes; which table it was does not matter, since the
// route is asked for again.
func (p *pendingChanges) Route(dest netip.Prefix, _ int) {
	if dest.Bits() == 0 || !dest.Addr().IsMulticast() {
		p.Note(func(c *changes) { c.AddRoute(dest) })
	}
}

// follower is a card as its host sees it: network.Card.
type follower struct {
	*pendingChanges
	card *Card
}

// TooBig implements network.Card.
func (f follower) TooBig(said host.TooBig) { f.card.noteTooBig(said) }

// Look implements network.Card.
func (f follower) Look() (done bool) {
	if f.card.look(everything()).failed {
		f.Missed()
		return false
	}
	return true
}

// Close implements network.Card.
func (f follower) Close() error { return f.card.Close() }

// Neighbour implements host.Changes.
func (p *pendingChanges) Neighbour(address netip.Addr) {
	p.Note(func(c *changes) { c.AddNeighbour(address) })
}
