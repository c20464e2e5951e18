package network

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
)

// Routes is what is asked about the way to a destination. An error means that the host could not be
// asked, and says nothing about the answer, except for the errors that are named here.
type Routes interface {
	// Route gives the route from one of the card's addresses to a destination: host.ErrNoRoute,
	// host.ErrLocal.
	Route(source, dest netip.Addr) (host.Route, error)
	// Neighbour gives what the host knows of a next hop now.
	Neighbour(hop netip.Addr) (Neighbour, error)
	// Hold has the host ask a next hop for its MAC at once, and keep the answer up to date until
	// Release. A second call has it ask again.
	Hold(hop netip.Addr) error
	Release(hop netip.Addr)
}

// Neighbour is what the host knows of a next hop.
type Neighbour struct {
	MAC    wire.MAC
	Known  bool // MAC is valid
	Failed bool // it was asked and has not answered
	Absent bool // the host has no entry for it
}
