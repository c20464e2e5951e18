package network

import (
	"net/netip"
	"time"

	"fmt"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Host is the network that a card is on, and the host around it. An error of a question means that it could
// not be asked, and says nothing about the answer, except for the errors that are named.
//
// The order is Start, Port and whatever else, Follow and Listen, Interrupt, Close. Port is called by one at a
// time, the other questions by any; none is called with a lock that the host's own calls of Card need.
type Host interface {
	Routes
	Groups
	Steering

	// Name is the port's, as of the last Port.
	Name() string
	// VLAN is the tag of the card's frames; 0 for none.
	VLAN() uint16
	// Links are where the card's frames come from and go to: one for each worker, or fewer, if the network has said why.
	// verbs.ErrUnsupported if there is never more than one. It is called once; the engines close them, before Close.
	Links(workers int) ([]link.Link, error)
	// Link is the first.
	Link() link.Link
	// Start is called once, when the engine is there.
	Start(Engine)
	// Port gives the port's present state, after the link was made to fit it; ErrGone if the port does not exist any
	// more.
	Port() (Port, error)
	// Source gives the address that the host would send from to a destination, if the way there leads
	// through the port; zero if it leaves that open. host.ErrNoRoute, host.ErrLocal.
	Source(dest netip.Addr) (netip.Addr, error)
	// Namespace is the same for cards that share port numbers; it can be compared.
	Namespace() any
	// PortRules are the host's, as of now.
	PortRules() PortRules

	// Follow has the card told of what changes, until Interrupt. Listen runs what has to be told from a
	// goroutine, and returns after Interrupt or before.
	Follow(Card)
	Listen()
	Interrupt()
	// Check says why packets do not come any more, if that is so for good; it is called about once a second.
	Check() error

	// Modes are how frames move.
	Modes() Modes
	// Statistics are what the network has counted. What a network does not count is 0.
	Statistics() (Statistics, error)
	Close() error
}

// Groups is the host's membership of groups. Each Join needs a Leave; the last one ends the membership.
type Groups interface {
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
}

// Steering decides which packets reach the engine. It is a filter: what it lets through the engine checks again.
// verbs.ErrLimit for what it has no room for.
type Steering interface {
	AddQP(number uint32) error
	RemoveQP(number uint32) error
	AddAddress(netip.Addr) error
	RemoveAddress(netip.Addr) error
	AddBroadcast(netip.Addr) error
	RemoveBroadcast(netip.Addr) error
	SetMACs(...[6]byte) error
	AddGroup(netip.Addr) error
	RemoveGroup(netip.Addr) error
}

// Engine is what a network needs of the card's engine to change the link while packets move; see datapath.Workers.
type Engine interface {
	Do(change func())
	ChangeLink(change func())
	Until(done func() bool, timeout time.Duration) bool
	// Relay has the first worker's link send frames of others. Relayed is how many it was given, and how many of them
	// it is done with.
	Relay() link.Relay
	Relayed() (given, done uint64)
}

// Card is told of changes around it.
type Card interface {
	host.Changes
	// TooBig tells of a router that could not forward a packet.
	TooBig(host.TooBig)
	// Look brings the card up to date before it returns; false if something could not be asked. Then the card
	// tries again by itself.
	Look() (done bool)
	Close() error
}

// ErrGone is the error of a port that does not exist any more.
var ErrGone = errno.New("the interface has gone; open the device again when it is back", unix.ENODEV)

// Modes are how a card's frames move, by name; "none" where that means nothing.
type Modes struct {
	XDP, Socket string
	Send        string
	SendReason  string // why frames do not leave in trains
}

// Statistics are what a network has counted.
type Statistics struct {
	Steering []verbs.Counter // a packet each
	Socket   xsk.Statistics
	Sent     link.Sent
	UDP      UDPCounters
}

// UDPCounters count what UDP sockets gave that was of no use, in packets or rows of them.
type UDPCounters struct {
	Truncated uint64 // longer than any packet
	Control   uint64 // without all that the kernel is to tell of a packet
}

// PortRules are what a host says of port numbers.
type PortRules = host.PortRules

// DefaultPortRules are those of a host whose administrator has changed none.
func DefaultPortRules() PortRules { return host.DefaultPortRules() }

// HostError wraps an error of the host in one of package verbs, as all errors of a session are.
func HostError(err error) error {
	if err == nil || verbs.KindOf(err) != nil {
		return err
	}
	return fmt.Errorf("%w: %w", verbs.ErrHost, err)
}

// OneLink is Links of a network that has no more than one.
func OneLink(l link.Link, workers int, what string) ([]link.Link, error) {
	if workers > 1 {
		return nil, fmt.Errorf("%w: %d workers: %s has one; cards on interfaces with several queues, by XDP, and on a network in memory can have more", verbs.ErrUnsupported, workers, what)
	}
	return []link.Link{l}, nil
}

// NoSteering is the Steering of a network that hands all packets to the engine.
type NoSteering struct{}

// The methods implement Steering.
func (NoSteering) AddQP(uint32) error               { return nil }
func (NoSteering) RemoveQP(uint32) error            { return nil }
func (NoSteering) AddAddress(netip.Addr) error      { return nil }
func (NoSteering) RemoveAddress(netip.Addr) error   { return nil }
func (NoSteering) AddBroadcast(netip.Addr) error    { return nil }
func (NoSteering) RemoveBroadcast(netip.Addr) error { return nil }
func (NoSteering) SetMACs(...[6]byte) error         { return nil }
func (NoSteering) AddGroup(netip.Addr) error        { return nil }
func (NoSteering) RemoveGroup(netip.Addr) error     { return nil }
