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

// What is asked of the card, of the program and of who owns what the manager does.

// Config is what a Manager works with.
type Config struct {
	Card  Card
	Paths *paths.Table
	Ports *Ports
	Log   *slog.Logger
}

// Card is what connection management asks of its card. The methods may take the card's locks.
type Card interface {
	Name() string
	// Ended is closed when the card has failed, or is being closed.
	Ended() <-chan struct{}
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
	// NoteFault counts and logs a mistake of roced's own that was contained.
	NoteFault(cause error)
	// PortRules are the host's, as of now.
	PortRules() network.PortRules
}

// CardSession is the session that QP 1 is in: the card's own.
type CardSession interface {
	provider.Provider
	// Settle sends what was posted, for so long at most.
	Settle(timeout time.Duration)
}

// Program is a session of the card, as its ids need it. Its methods may take the card's locks.
type Program interface {
	paths.User
	// Faulted ends the session because of a mistake in its work.
	Faulted(cause error)
	// MayBindService says whether the program may bind to a port that needs a privilege, and BindPrivilege names that.
	MayBindService() bool
	BindPrivilege() string
	// Block runs, in a goroutine, a system call that the program can make block.
	Block(call func())
	PrepareJoin(provider.JoinMulticastRequest) (Join, error)
	LeaveMulticast(provider.LeaveMulticastRequest) error
}

// Join is a membership of a group that an id asks for: it is counted first, then the host joins, which may take
// some time.
type Join interface {
	Reserve() error
	Finish() (provider.JoinMulticastGrant, error)
}

// SessionConfig describes the program of a Session, and what it may have.
type SessionConfig struct {
	Program Program
	Limits  quota.Limits
	Quota   *quota.Quota // of the program's user; nil for a program in this process
}

// Owner is the owner of an inquiry or a listener. CMEvent is called by one goroutine, without a lock.
// It must not wait.
type Owner interface{ CMEvent(cm.Event) }
