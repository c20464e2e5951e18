// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// Config describes the card of a Manager.
type Config struct {
	Card  Card
	Ended <-chan struct{} // closed when the card has failed, or is being closed
	Paths *paths.Table
	Ports *Ports
	Log   *slog.Logger
	// NoteFault counts and logs a contained panic.
	NoteFault func(cause error)
}

// Card is the port of a card, as connection management uses it. FindEnds queries the host; the other methods do not
// block.
type Card interface {
	Name() string
	// Own checks an address to bind to: one of the card's, a local address, or the unspecified address.
	Own(netip.Addr) (netip.Addr, error)
	// FindEnds returns the addresses of a message to a destination. It queries the host. Local addresses are returned
	// unchanged.
	FindEnds(source, dest netip.Addr) (from, to netip.Addr, err error)
	// Local reports whether an address names the card without being one of its addresses, as loopback addresses do.
	// OneMachine reports whether local addresses also name the other cards with the same Ports.
	Local(netip.Addr) bool
	OneMachine() bool
	// LoopbackEnd returns the card's address that both ends use for a message between addresses of which one is local.
	LoopbackEnd(from, to netip.Addr) (netip.Addr, error)
	// AHAttr describes the address handle of a path.
	AHAttr(ends paths.Ends, class uint8) verbs.AHAttr
	GIDIndex(wire.GID) (int, error)
	GUID() uint64
	ActiveMTU() wire.MTU
	// PortRules returns the host's current rules.
	PortRules() network.PortRules
}

// CardSession is the session of QP 1. It is the card's own: no program sees it, no limit counts it, and the card never
// runs in its caller's thread.
type CardSession struct {
	provider.Provider
	Settle func(timeout time.Duration) // sends posted requests
}

// Program is a session of the card, to which ids belong. Its methods may acquire the card's locks.
type Program interface {
	paths.User
	// Faulted ends the session because of a panic in its work.
	Faulted(cause error)
}

// Groups holds the memberships of a program. The methods acquire the card's locks.
type Groups interface {
	Prepare(provider.JoinMulticastRequest) (Join, error)
	Leave(provider.LeaveMulticastRequest) error
}

// Join is a membership that an id requests: Reserve counts it, then Finish makes the host a member, which may take some
// time.
type Join interface {
	Reserve() error
	Finish() (provider.JoinMulticastGrant, error)
}

// SessionConfig describes the program of a Session, with its limits and privileges.
type SessionConfig struct {
	Program Program
	Groups  Groups
	Limits  quota.Limits
	Quota   *quota.Quota // of the program's user; nil for a program in this process
	// MayBindService reports whether the program is allowed to bind to a privileged port. BindPrivilege names the
	// privilege, for errors.
	MayBindService func() bool
	BindPrivilege  string
	// Block runs, in a goroutine, a system call that the program can block. If nil, each such call has its own
	// goroutine.
	Block func(call func())
}

// Owner is the owner of an inquiry or a listener. CMEvent is called by one goroutine, without a lock. It must not
// block.
type Owner interface{ CMEvent(cm.Event) }
