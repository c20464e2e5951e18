package verbs

import (
	"context"
	"net/netip"
	"os"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// Handle names an object of a session. Each session has its own.
type Handle uint32

// Provider is a program's session on a card: the commands that make and change objects, in one
// interface for each kind of object. Each command takes a request and returns a grant. Work requests
// and completions do not pass through it, but through the queues that grants contain.
//
// Its methods are safe for concurrent use. A Provider checks every field of a request. A command
// holds no lock that posting or polling needs. Each error wraps one of this package's Err values,
// and the host's own error if there is one. Package verbstest tests all of this.
type Provider interface {
	DeviceProvider
	PDProvider
	MRProvider
	CQProvider
	SRQProvider
	QPProvider
	AHProvider
	McastProvider

	// Claim takes the session for a Context; ErrBusy if it has one.
	Claim() error

	// Doorbell is the memory in which posts are announced. Wake is called when its Ring says that
	// the card sleeps.
	Doorbell() *ring.Doorbell
	Wake()

	// GetAsyncEvent waits for an event. Context.GetAsyncEvent says which events are kept, and what
	// ends the wait.
	GetAsyncEvent(ctx context.Context) (EventReport, error)

	// Done is closed when the session has ended. Err then gives the reason: ErrClosed after Close,
	// ErrDeviceFatal when the card failed or the connection to it ended. Commands return the same
	// error; those that free something work until Close.
	Done() <-chan struct{}
	Err() error
	// Close frees all objects of the session. Posted requests are sent first.
	Close() error
}

// Progressor is implemented by a Provider whose card runs in the program's process, and which the
// program can run itself while it polls or waits. Package verbs calls it, programs do not.
type Progressor interface {
	// Progress runs one round of the card in the caller's thread. It returns false without having
	// done so if another thread is running one.
	Progress() bool
	// BeginWait says that the caller is about to sleep until a completion comes, and EndWait that it
	// has woken. In between the card must not rely on this caller to run it.
	BeginWait()
	EndWait()
	// NoteReady says that the caller was about to wait, and a completion was there.
	NoteReady()
	// Lead runs the card in the caller's thread, asleep while there is nothing to do. It returns true
	// when it has taken something from events, closed is closed, the session has ended or ctx is
	// done. It returns false at once if the caller has to wait for these itself. The caller has
	// called BeginWait.
	Lead(ctx context.Context, events, closed <-chan struct{}) (over bool)
	// WakeLeader is called when closed has been closed.
	WakeLeader()
}

// DeviceProvider gives the properties of the card and its port.
type DeviceProvider interface {
	QueryDevice() (DeviceAttr, error)
	QueryPort(QueryPortRequest) (PortAttr, error)
	QueryGIDTable(QueryGIDTableRequest) (QueryGIDTableGrant, error)
	QueryPKey(QueryPKeyRequest) (QueryPKeyGrant, error)
	QueryRTValues() (RTValues, error)
}

// PDProvider makes protection domains.
type PDProvider interface {
	AllocPD() (AllocPDGrant, error)
	DeallocPD(DeallocPDRequest) error
}

// MRProvider makes memory regions.
type MRProvider interface {
	// AllocMR makes memory that both the program and the card can access, and registers it.
	AllocMR(AllocMRRequest) (MRGrant, error)
	// RegMR registers the caller's memory; ErrUnsupported where the card cannot reach it.
	RegMR(RegMRRequest) (MRGrant, error)
	// ReregMR changes a region between two requests that use it. If it fails, nothing has changed.
	ReregMR(ReregMRRequest) error
	DeregMR(DeregMRRequest) error
}

// CQProvider makes completion channels and completion queues.
type CQProvider interface {
	CreateCompChannel() (CreateCompChannelGrant, error)
	DestroyCompChannel(DestroyCompChannelRequest) error

	CreateCQ(CreateCQRequest) (CreateCQGrant, error)
	// ResizeCQ has the card write a new queue. The old one keeps what it holds and stays readable: the
	// program reads it to the end, and says that it has by the next ResizeCQ or DestroyCQ of the CQ. A
	// Provider whose queues are in shared memory unmaps or reuses it then, not before.
	ResizeCQ(ResizeCQRequest) (ResizeCQGrant, error)
	ModifyCQ(ModifyCQRequest) error
	// CheckCQ sends the events that an armed CQ owes for what is unread, also for what was there when
	// it was armed.
	CheckCQ(CheckCQRequest) error
	DestroyCQ(DestroyCQRequest) error
}

// SRQProvider makes shared receive queues.
type SRQProvider interface {
	CreateSRQ(CreateSRQRequest) (CreateSRQGrant, error)
	// ModifySRQ makes the whole change or none of it.
	ModifySRQ(ModifySRQRequest) (ModifySRQGrant, error)
	QuerySRQ(QuerySRQRequest) (QuerySRQGrant, error)
	DestroySRQ(DestroySRQRequest) error
}

// QPProvider makes queue pairs.
type QPProvider interface {
	CreateQP(CreateQPRequest) (CreateQPGrant, error)
	ModifyQP(ModifyQPRequest) (ModifyQPGrant, error)
	QueryQP(QueryQPRequest) (QueryQPGrant, error)
	DestroyQP(DestroyQPRequest) error
}

// AHProvider makes address handles.
type AHProvider interface {
	// CreateAH may wait for a neighbour to answer, until ctx is done.
	CreateAH(ctx context.Context, request CreateAHRequest) (CreateAHGrant, error)
	// ModifyAH may wait as CreateAH does. If it fails, nothing has changed.
	ModifyAH(ctx context.Context, request ModifyAHRequest) error
	QueryAH(QueryAHRequest) (QueryAHGrant, error)
	DestroyAH(DestroyAHRequest) error
}

// McastProvider attaches queue pairs to groups, and joins them.
type McastProvider interface {
	// AttachMcast has a queue pair receive a group's messages; see QP.AttachMcast.
	AttachMcast(McastRequest) error
	DetachMcast(McastRequest) error

	// JoinMulticast makes a membership. The host is a member while there is a full one.
	JoinMulticast(JoinMulticastRequest) (JoinMulticastGrant, error)
	LeaveMulticast(LeaveMulticastRequest) error
}

// The requests and grants, in the order of the commands above.
type (
	// QueryPortRequest asks for the state of a port.
	QueryPortRequest struct{ Port uint8 }

	// QueryGIDTableRequest asks for a port's GID table.
	QueryGIDTableRequest struct{ Port uint8 }
	// QueryGIDTableGrant is a GID table: the entries that are in use, ordered by index, and how many
	// there can be (PortAttr.GIDTableLen).
	QueryGIDTableGrant struct {
		Entries []GIDEntry
		Length  int
	}

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
		Length int    // bytes
		IOVA   uint64 // the address that the region begins at
		Access AccessFlags
	}
	// RegMRRequest asks for the caller's memory to be registered.
	RegMRRequest struct {
		PD     Handle
		Memory []byte
		IOVA   uint64
		Access AccessFlags
	}
	// MRGrant is a registered memory region.
	MRGrant struct {
		MR     Handle
		LKey   ring.LKey
		Memory []byte
	}
	// ReregMRRequest changes a memory region, whose keys stay the same. Only the fields that Flags
	// names count; the others are 0.
	ReregMRRequest struct {
		MR     Handle
		Flags  ReregFlags
		PD     Handle
		Memory []byte
		IOVA   uint64
		Access AccessFlags
	}
	// DeregMRRequest ends the registration of a memory region.
	DeregMRRequest struct{ MR Handle }

	// CreateCompChannelGrant is a new completion channel.
	CreateCompChannelGrant struct {
		Channel Handle
		// Events is the program's end of a pipe or socket, which does not block. For each notification of
		// a CQ the card writes the CQ's EventID to it: 8 bytes, in the machine's byte order. It ends when the
		// card is gone.
		Events *os.File
	}
	// DestroyCompChannelRequest frees a completion channel.
	DestroyCompChannelRequest struct{ Channel Handle }

	// CreateCQRequest asks for a completion queue.
	CreateCQRequest struct {
		Entries    int
		EventID    uint64 // chosen by the program; its events carry it
		Channel    Handle // to which its notifications go; 0: to none
		CompVector int
		WCFlags    CQWCFlags
		Flags      CQFlags
	}
	// CreateCQGrant is a completion queue as it was made: at least as large as requested.
	CreateCQGrant struct {
		CQ       Handle
		Memory   []byte
		Geometry ring.Geometry
		// Events gets a value when those who wait are to look (ring.ArmedWait). Its capacity is 1,
		// and both the card and the program may send to it.
		Events chan struct{}
	}
	// ResizeCQRequest asks for a queue with room for so many completions.
	ResizeCQRequest struct {
		CQ      Handle
		Entries int
	}
	// ResizeCQGrant is the new queue.
	ResizeCQGrant struct {
		Memory   []byte
		Geometry ring.Geometry
	}
	// ModifyCQRequest sets a CQ's moderation; see CQ.Modify.
	ModifyCQRequest struct {
		CQ            Handle
		Count, Period uint16
	}
	// CheckCQRequest asks for the events that a CQ owes, of these armings.
	CheckCQRequest struct {
		CQ      Handle
		Armings ring.Arming
	}
	// DestroyCQRequest frees a completion queue.
	DestroyCQRequest struct{ CQ Handle }

	// CreateSRQRequest asks for a shared receive queue.
	CreateSRQRequest struct {
		PD      Handle
		Attr    SRQInitAttr
		EventID uint64 // chosen by the program; its events carry it
	}
	// CreateSRQGrant is a shared receive queue as it was made: at least as large as requested.
	CreateSRQGrant struct {
		SRQ      Handle
		Attr     SRQAttr
		Memory   []byte
		Geometry ring.Geometry
	}
	// ModifySRQRequest changes the attributes in the mask.
	ModifySRQRequest struct {
		SRQ  Handle
		Attr SRQAttr
		Mask SRQAttrMask
	}
	// ModifySRQGrant is the attributes after the change. After a resize the program posts to the new
	// queue in Memory, and never again to an older one, of which the card takes what is left first. By
	// a resize the program says that it looks no more at queues that were empty at the one before.
	ModifySRQGrant struct {
		Attr     SRQAttr
		Memory   []byte // nil without a resize
		Geometry ring.Geometry
	}
	// QuerySRQRequest asks for a shared receive queue's attributes.
	QuerySRQRequest struct{ SRQ Handle }
	// QuerySRQGrant is a shared receive queue's attributes.
	QuerySRQGrant struct{ Attr SRQAttr }
	// DestroySRQRequest frees a shared receive queue.
	DestroySRQRequest struct{ SRQ Handle }

	// CreateQPRequest asks for a queue pair, in RESET.
	CreateQPRequest struct {
		PD              Handle
		Type            QPType
		Cap             QPCap
		SigAll          bool
		BlockSelfMcast  bool
		Port            uint8 // of a GSI queue pair
		SendCQ, RecvCQ  Handle
		SRQ             Handle // 0: it has a receive queue of its own
		DoorbellIndex   uint32 // its bit in the doorbell, chosen by the program
		CompletionToken uint32 // chosen by the program; its completions carry it
		EventID         uint64 // chosen by the program; its events carry it
	}
	// CreateQPGrant is a queue pair as it was made. With an SRQ it has no receive memory.
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
		CompletionToken uint32 // the queue pair's new one, if the mask has the state and it is RESET
	}
	// ModifyQPGrant is a queue pair's attributes after the change, without its capabilities.
	ModifyQPGrant struct{ Attr QPAttr }
	// QueryQPRequest asks for a queue pair's attributes.
	QueryQPRequest struct{ QP Handle }
	// QueryQPGrant is a queue pair's attributes, without its capabilities.
	QueryQPGrant struct{ Attr QPAttr }
	// DestroyQPRequest frees a queue pair.
	DestroyQPRequest struct{ QP Handle }

	// CreateAHRequest asks for an address handle.
	CreateAHRequest struct {
		PD   Handle
		Attr AHAttr
		// NoWait makes the handle at once, even if the neighbour has not answered yet. Packets
		// that are sent meanwhile wait on the card.
		NoWait bool
	}
	// CreateAHGrant is a new address handle.
	CreateAHGrant struct{ AH Handle }
	// ModifyAHRequest makes an address handle one to another address.
	ModifyAHRequest struct {
		AH   Handle
		Attr AHAttr
	}
	// QueryAHRequest asks for an address handle's attributes.
	QueryAHRequest struct{ AH Handle }
	// QueryAHGrant is an address handle's attributes as the card has them.
	QueryAHGrant struct{ Attr AHAttr }
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
	// JoinMulticastGrant is a membership, with what the join computed.
	JoinMulticastGrant struct {
		Membership Handle
		MGID       wire.GID
		SGID       wire.GID // to send from; zero if the interface has no address that suits
	}
	// LeaveMulticastRequest ends a membership.
	LeaveMulticastRequest struct{ Membership Handle }
)

// EventReport is an asynchronous event as a card reports it.
type EventReport struct {
	Type    EventType
	Port    uint8  // for events of a port
	EventID uint64 // for events of a CQ, SRQ or queue pair: the one that it was created with
}
