package verbs

import (
	"context"
	"net/netip"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// Handle names an object of a session. Each session has its own.
type Handle uint32

// Provider is a program's session on a card, as the card's driver sees it: the commands that make
// and change objects, cut by noun. Each takes a request and gives a grant. Work requests and
// completions do not pass through it, but through the queues that grants hand out.
//
// Its methods are safe for concurrent use, and all that a request says is checked on its side. No
// lock that posts or polls need is held over a command. Errors are this package's: each is one of
// its Err values, with a text, and what the host said wrapped beside it where that is at hand.
// Package verbstest asks all of this of one.
type Provider interface {
	DeviceProvider
	PDProvider
	MRProvider
	CQProvider
	QPProvider
	AHProvider
	McastProvider

	// Claim takes the session for a Context; ErrBusy if it has one.
	Claim() error

	// Doorbell is the memory in which posts are announced; Wake is called when
	// ringing says that the card sleeps.
	Doorbell() *ring.Doorbell
	Wake()

	// GetAsyncEvent waits for an event; see Context.GetAsyncEvent, which says what is
	// kept for how long, and what ends the wait.
	GetAsyncEvent(ctx context.Context) (EventReport, error)

	// Done is closed when the session is over, and Err says why then: ErrClosed after Close,
	// ErrDeviceFatal when the card failed or the connection to it ended. Commands give the same
	// error; those that free something work until Close.
	Done() <-chan struct{}
	Err() error
	// Close frees all that the session has. What has been posted is sent first.
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

// DeviceProvider tells what the card and its port are.
type DeviceProvider interface {
	QueryDevice() (DeviceAttr, error)
	QueryPort(QueryPortRequest) (PortAttr, error)
	QueryGIDTable(QueryGIDTableRequest) (QueryGIDTableGrant, error)
	QueryPKey(QueryPKeyRequest) (QueryPKeyGrant, error)
}

// PDProvider makes protection domains.
type PDProvider interface {
	AllocPD() (AllocPDGrant, error)
	DeallocPD(DeallocPDRequest) error
}

// MRProvider makes memory regions.
type MRProvider interface {
	// AllocMR makes memory that both sides reach and registers it.
	AllocMR(AllocMRRequest) (MRGrant, error)
	// RegMR registers the caller's memory; ErrUnsupported where the card cannot reach it.
	RegMR(RegMRRequest) (MRGrant, error)
	DeregMR(DeregMRRequest) error
}

// CQProvider makes completion queues.
type CQProvider interface {
	CreateCQ(CreateCQRequest) (CreateCQGrant, error)
	DestroyCQ(DestroyCQRequest) error
}

// QPProvider makes queue pairs.
type QPProvider interface {
	CreateQP(CreateQPRequest) (CreateQPGrant, error)
	ModifyQP(ModifyQPRequest) error
	QueryQP(QueryQPRequest) (QueryQPGrant, error)
	DestroyQP(DestroyQPRequest) error
}

// AHProvider makes address handles.
type AHProvider interface {
	// CreateAH may wait for a neighbour, until ctx is done.
	CreateAH(ctx context.Context, request CreateAHRequest) (CreateAHGrant, error)
	DestroyAH(DestroyAHRequest) error
}

// McastProvider attaches queue pairs to groups, and joins them.
type McastProvider interface {
	// AttachMcast has a queue pair receive what is sent to a group; see QP.AttachMcast.
	AttachMcast(McastRequest) error
	DetachMcast(McastRequest) error

	// JoinMulticast makes a membership; a full one is the host's too, until the last
	// of them leaves.
	JoinMulticast(JoinMulticastRequest) (JoinMulticastGrant, error)
	LeaveMulticast(LeaveMulticastRequest) error
}

// The requests, and what they grant, in the order of the commands above.
type (
	// QueryPortRequest asks for the state of a port.
	QueryPortRequest struct{ Port uint8 }

	// QueryGIDTableRequest asks for a port's GID table.
	QueryGIDTableRequest struct{ Port uint8 }
	// QueryGIDTableGrant is a GID table: the lines that are in use, by their index.
	QueryGIDTableGrant struct{ Entries []GIDEntry }

	// QueryPKeyRequest asks for a partition key of a port.
	QueryPKeyRequest struct {
		Port  uint8
		Index int
	}
	// QueryPKeyGrant is a partition key.
	QueryPKeyGrant struct{ PKey wire.PKey }

	// AllocPDGrant is a new protection domain.
	AllocPDGrant struct{ PD Handle }
	// DeallocPDRequest frees a protection domain.
	DeallocPDRequest struct{ PD Handle }

	// AllocMRRequest asks for zeroed memory, registered.
	AllocMRRequest struct {
		PD     Handle
		Length int // bytes
		Access AccessFlags
	}
	// RegMRRequest asks for the caller's memory to be registered.
	RegMRRequest struct {
		PD     Handle
		Memory []byte
		Access AccessFlags
	}
	// MRGrant is a registered memory region.
	MRGrant struct {
		MR     Handle
		LKey   ring.LKey
		Memory []byte
	}
	// DeregMRRequest ends the registration of a memory region.
	DeregMRRequest struct{ MR Handle }

	// CreateCQRequest asks for a completion queue.
	CreateCQRequest struct {
		Entries int
		EventID uint64 // chosen by the program, echoed in events
	}
	// CreateCQGrant is a completion queue as it was made: at least as large as asked for.
	CreateCQGrant struct {
		CQ       Handle
		Memory   []byte
		Geometry ring.Geometry
		// Events gets one value for an armed queue's event; it is of capacity 1, and
		// both sides may send to it.
		Events chan struct{}
	}
	// DestroyCQRequest frees a completion queue.
	DestroyCQRequest struct{ CQ Handle }

	// CreateQPRequest asks for a queue pair, in RESET.
	CreateQPRequest struct {
		PD              Handle
		Type            QPType
		Cap             QPCap
		SigAll          bool
		BlockSelfMcast  bool
		SendCQ, RecvCQ  Handle
		DoorbellIndex   uint32 // bit in the doorbell, chosen by the program
		CompletionToken uint32 // chosen by the program, echoed in completions
		EventID         uint64 // chosen by the program, echoed in events
	}
	// CreateQPGrant is a queue pair as it was made.
	CreateQPGrant struct {
		QP           Handle
		Number       wire.QPN
		Cap          QPCap
		SendMemory   []byte
		SendGeometry ring.Geometry
		RecvMemory   []byte
		RecvGeometry ring.Geometry
	}
	// ModifyQPRequest changes the attributes in the mask.
	ModifyQPRequest struct {
		QP              Handle
		Attr            QPAttr
		Mask            QPAttrMask
		CompletionToken uint32 // replaces the queue pair's when the mask has the state and it is RESET
	}
	// QueryQPRequest asks for a queue pair's attributes.
	QueryQPRequest struct{ QP Handle }
	// QueryQPGrant is a queue pair's attributes, but for its capabilities.
	QueryQPGrant struct{ Attr QPAttr }
	// DestroyQPRequest frees a queue pair.
	DestroyQPRequest struct{ QP Handle }

	// CreateAHRequest asks for an address handle.
	CreateAHRequest struct {
		PD   Handle
		Attr AHAttr
		// NoWait makes the handle at once, though the neighbour may not have answered yet: what
		// is sent meanwhile waits on the card.
		NoWait bool
	}
	// CreateAHGrant is a new address handle.
	CreateAHGrant struct{ AH Handle }
	// DestroyAHRequest frees an address handle.
	DestroyAHRequest struct{ AH Handle }

	// McastRequest attaches a queue pair to a group, or detaches it.
	McastRequest struct {
		QP   Handle
		MGID wire.GID
		MLID wire.MLID
	}

	// JoinMulticastRequest asks for a membership.
	JoinMulticastRequest struct {
		Group netip.Addr
		Flags JoinFlags
	}
	// JoinMulticastGrant is a membership, and what the join computed, once.
	JoinMulticastGrant struct {
		Membership Handle
		MGID       wire.GID
		SGID       wire.GID // to send from; zero if there is none
	}
	// LeaveMulticastRequest ends a membership.
	LeaveMulticastRequest struct{ Membership Handle }
)

// EventReport is an asynchronous event as a card tells it.
type EventReport struct {
	Type    EventType
	Port    uint8  // of the port's events
	EventID uint64 // of a CQ's or queue pair's: what it was made with
}
