package verbs

import (
	"context"
	"net/netip"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// Handle names an object of a Provider.
type Handle uint32

// Provider is a card as its driver sees it: the commands that make and change
// objects. Work requests and completions do not pass through it, but through
// the queues that Create commands hand out. Its methods are safe for
// concurrent use, and their errors are this package's.
type Provider interface {
	QueryDevice() (DeviceAttr, error)
	QueryPort(port uint8) (PortAttr, error)
	QueryGID(port uint8, index int) (GIDEntry, error)
	QueryPKey(port uint8, index int) (wire.PKey, error)

	AllocPD() (Handle, error)
	DeallocPD(pd Handle) error

	// AllocMR makes memory that both sides reach and registers it.
	AllocMR(pd Handle, length int, access AccessFlags) (MRGrant, error)
	// RegMR registers the caller's memory; ErrUnsupported where the card cannot reach it.
	RegMR(pd Handle, memory []byte, access AccessFlags) (MRGrant, error)
	DeregMR(mr Handle) error

	// CreateCQ makes a completion queue; user is echoed in its events.
	CreateCQ(entries int, user uint64) (CQGrant, error)
	DestroyCQ(cq Handle) error

	CreateQP(pd Handle, c QPCommand) (QPGrant, error)
	// ModifyQP changes the attributes in mask. The token replaces the queue pair's
	// when mask has the state and it is RESET.
	ModifyQP(qp Handle, attr *QPAttr, mask QPAttrMask, token uint32) error
	QueryQP(qp Handle) (QPAttr, error)
	DestroyQP(qp Handle) error

	// AttachMcast has a queue pair receive what is sent to a group; see QP.AttachMcast.
	AttachMcast(qp Handle, mgid wire.GID, mlid wire.MLID) error
	DetachMcast(qp Handle, mgid wire.GID, mlid wire.MLID) error

	// JoinMulticast makes a membership; a full one is the host's too, until the last
	// of them leaves.
	JoinMulticast(group netip.Addr, flags JoinFlags) (MembershipGrant, error)
	LeaveMulticast(membership Handle) error

	// CreateAH makes an address handle. It may wait for a neighbour, until ctx is done.
	CreateAH(ctx context.Context, c AHCommand) (Handle, error)
	DestroyAH(ah Handle) error

	// Claim takes the card for a Context; ErrBusy if it has one: a card serves one.
	Claim() error

	// Doorbell is the memory in which posts are announced; Wake is called when
	// ringing says that the card sleeps.
	Doorbell() *ring.Doorbell
	Wake()

	// GetAsyncEvent waits for an event; see Context.GetAsyncEvent, which says what is
	// kept for how long, and what ends the wait.
	GetAsyncEvent(ctx context.Context) (EventReport, error)

	// Done is closed when the card is gone, and Err says why then: ErrClosed after Close,
	// ErrDeviceFatal when it failed or the connection to it ended. Commands give the same
	// error; those that free something work until Close.
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Progressor is implemented by a Provider whose card a program can run itself,
// while it polls: the embedded one.
type Progressor interface {
	// Progress runs one round of the card in the caller's thread unless somebody
	// else is running one.
	Progress() bool
	// BeginWait says that the caller is about to sleep until a completion comes, and
	// EndWait that it does not any more: meanwhile the card does not rely on programs that poll.
	BeginWait()
	EndWait()
}

// MRGrant is a registered memory region.
type MRGrant struct {
	Handle Handle
	LKey   ring.LKey
	Memory []byte
}

// CQGrant is a completion queue as it was made: at least as large as asked for.
type CQGrant struct {
	Handle   Handle
	Memory   []byte
	Geometry ring.Geometry
	// Events gets one value for an armed queue's event; it is of capacity 1, and
	// both sides may send to it.
	Events chan struct{}
}

// QPCommand asks for a queue pair.
type QPCommand struct {
	Type           QPType
	Cap            QPCap
	SigAll         bool
	BlockSelfMcast bool
	SendCQ, RecvCQ Handle
	Index          uint32 // bit in the doorbell, chosen by the program
	Token          uint32 // chosen by the program, echoed in completions
	User           uint64 // chosen by the program, echoed in events
}

// QPGrant is a queue pair as it was made.
type QPGrant struct {
	Handle       Handle
	Number       wire.QPN
	Cap          QPCap
	SendMemory   []byte
	SendGeometry ring.Geometry
	RecvMemory   []byte
	RecvGeometry ring.Geometry
}

// AHCommand asks for an address handle.
type AHCommand struct {
	PD   Handle
	Attr AHAttr
	// NoWait makes the handle at once, though the neighbour may not have answered yet: what
	// is sent meanwhile waits on the card.
	NoWait bool
}

// EventReport is an asynchronous event as a card tells it.
type EventReport struct {
	Type EventType
	Port uint8  // of the port's events
	User uint64 // of a CQ's or queue pair's: what it was made with
}

// MembershipGrant is a join: what it computed, once.
type MembershipGrant struct {
	Handle Handle
	MGID   wire.GID
	SGID   wire.GID // to send from; zero if there is none
}
