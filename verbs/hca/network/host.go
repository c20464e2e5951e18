// SPDX-License-Identifier: Apache-2.0

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

// Host is the network that a card is on, and the host around it. Except for the named errors, an error means that a
// query failed; it is not evidence of any state.
//
// The order of calls is Start, Port and any others, Follow and Listen, Interrupt, Close. Calls of Port are serialised
// by the caller, other queries may be concurrent; no method is called with a lock that the host's own calls of Card
// need.
type Host interface {
	Routes
	Groups
	Steering

	// Name returns the port's name at the last Port.
	Name() string
	// VLAN returns the tag of the card's frames; 0 for none.
	VLAN() uint16
	// Links returns the links of the card's frames: one for each worker, or fewer, if the network has logged the
	// reason. It returns verbs.ErrUnsupported if the network supports only one. It is called once; the engines close
	// the links, before Close.
	Links(workers int) ([]link.Link, error)
	// Link returns the first link.
	Link() link.Link
	// Start is called once, when the engine exists.
	Start(Engine)
	// Port adapts the link to the port's current state and returns that state. It returns ErrGone if the port no longer
	// exists.
	Port() (Port, error)
	// Source returns the host's source address for a destination, if the route leads through the port; zero if the host
	// does not determine it. Errors: host.ErrNoRoute, host.ErrLocal.
	Source(dest netip.Addr) (netip.Addr, error)
	// Namespace returns a comparable value that is equal for cards that share port numbers.
	Namespace() any
	// PortRules returns the host's current rules.
	PortRules() PortRules

	// Follow makes the host notify the card of changes, until Interrupt. Listen runs notifications that need a
	// goroutine, and returns after Interrupt or before.
	Follow(Card)
	Listen()
	Interrupt()
	// Check returns the reason if packets permanently cannot arrive any more. It is called about once a second.
	Check() error

	// Modes returns the modes in which frames move.
	Modes() Modes
	// Statistics returns the network's counters. Counters that a network does not have are 0.
	Statistics() (Statistics, error)
	Close() error
}

// Groups manages the host's membership of groups. Each Join needs a Leave; the last one ends the membership.
type Groups interface {
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
}

// Steering selects the packets that reach the engine. It is only a filter: the engine checks the packets again. Methods
// return verbs.ErrLimit if a table is full.
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

// Machine is implemented by a Namespace that is the machine on which this process runs: the addresses of the machine
// name the programs on each of its cards.
type Machine interface {
	// Owns reports whether an address is the machine's. Loopback addresses need no question.
	Owns(netip.Addr) bool
}

// Engine has the methods of the card's engine with which a network changes the link while packets move; see
// datapath.Workers.
type Engine interface {
	Do(change func())
	ChangeLink(change func())
	Until(done func() bool, timeout time.Duration) bool
	// Relay makes the first worker's link send frames of others. Relayed returns the number of frames passed to it, and
	// how many of them it has finished.
	Relay() link.Relay
	Relayed() (given, done uint64)
}

// Card is notified of changes around it.
type Card interface {
	host.Changes
	// TooBig reports that a router could not forward a packet.
	TooBig(host.TooBig)
	// Look updates the card before it returns. It returns false if a query failed; then the card retries.
	Look() (done bool)
	Close() error
}

// ErrGone is the error of a port that does not exist any more.
var ErrGone = errno.New("the interface has gone; open the device again when it is back", unix.ENODEV)

// Modes names the modes in which a card's frames move; "none" where a mode does not apply.
type Modes struct {
	XDP, Socket string
	Send        string
	SendReason  string // why frames do not leave in trains
}

// Statistics has the counters of a network.
type Statistics struct {
	Steering []verbs.Counter // one per packet
	Socket   xsk.Statistics
	Sent     link.Sent
	UDP      UDPCounters
}

// UDPCounters counts unusable data from UDP sockets, in packets or trains.
type UDPCounters struct {
	Truncated uint64 // longer than any packet
	Control   uint64 // without all control messages of the kernel for a packet
}

// PortRules has a host's rules for port numbers.
type PortRules = host.PortRules

// DefaultPortRules returns the rules of a host with default settings.
func DefaultPortRules() PortRules { return host.DefaultPortRules() }

// HostError wraps an error of the host in verbs.ErrHost, unless it is already an error of package verbs.
func HostError(err error) error {
	if err == nil || verbs.KindOf(err) != nil {
		return err
	}
	return fmt.Errorf("%w: %w", verbs.ErrHost, err)
}

// OneLink implements Links for a network with a single link.
func OneLink(l link.Link, workers int, what string) ([]link.Link, error) {
	if workers > 1 {
		return nil, fmt.Errorf("%w: %d workers: %s has one; cards on interfaces with several queues, by XDP, and on an in-memory network can have more", verbs.ErrUnsupported, workers, what)
	}
	return []link.Link{l}, nil
}

// NoSteering is the Steering of a network that passes all packets to the engine.
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
