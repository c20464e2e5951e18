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
	// NoteFault counts and logs a panic that was contained.
	NoteFault func(cause error)
}

// Card is the port of a card, as connection management needs it. FindEnds queries the host, the other methods do not
// wait.
type Card interface {
	Name() string
	// Own checks an address to bind to: one of the card's, a loopback address, or all.
	Own(netip.Addr) (netip.Addr, error)
	// FindEnds gives the addresses of a message to a destination. It asks the host. Loopback addresses stay as they are.
	FindEnds(source, dest netip.Addr) (from, to netip.Addr, err error)
	// LoopbackEnd is the address of the card's that both ends have of what is sent between addresses of which one is a
	// loopback address.
	LoopbackEnd(from, to netip.Addr) (netip.Addr, error)
	// AHAttr describes the address handle of a path.
	AHAttr(ends paths.Ends, class uint8) verbs.AHAttr
	GIDIndex(wire.GID) (int, error)
	GUID() uint64
	ActiveMTU() wire.MTU
	// PortRules are the host's, as of now.
	PortRules() network.PortRules
}

// CardSession is the session that QP 1 is in. It is the card's own: no program sees it, it counts against no limit, and the
// card never runs in the thread of its caller.
type CardSession struct {
	provider.Provider
	Settle func(timeout time.Duration) // sends what was posted
}

// Program is a session of the card, to which ids belong. Its methods may take the card's locks.
type Program interface {
	paths.User
	// Faulted ends the session because of a panic in its work.
	Faulted(cause error)
}

// Groups are the memberships of a program. The methods take the card's locks.
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

// SessionConfig describes the program of a Session, and what it may have.
type SessionConfig struct {
	Program Program
	Groups  Groups
	Limits  quota.Limits
	Quota   *quota.Quota // of the program's user; nil for a program in this process
	// MayBindService reports whether the program may bind to a port that needs a privilege. BindPrivilege is the name of the
	// privilege, for errors.
	MayBindService func() bool
	BindPrivilege  string
	// Block runs, in a goroutine, a system call that the program can make block. If nil, each call has a goroutine of its own.
	Block func(call func())
}

// Owner is the owner of an inquiry or a listener. CMEvent is called by one goroutine, without a lock.
// It must not wait.
type Owner interface{ CMEvent(cm.Event) }
