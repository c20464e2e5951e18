package provider

import (
	"context"

	"github.com/roced/roced/datapath/ring"
)

// CompVectors is how many completion vectors a card has. They are goroutines of the program, which call its handlers.
const CompVectors = 8

// MaxDMSize is how many bytes of device memory a session can have.
const MaxDMSize = 4 << 20

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
	CountersProvider
	XRCProvider
	AHProvider
	McastProvider
	CMProvider

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
}

// Leader is implemented by a Provider for which one of those who wait for completions can do the work
// that brings them: run the card, or read what the service says. Package verbs calls it, programs do not.
type Leader interface {
	// Lead does it in the caller's thread, asleep while there is nothing to do. It returns true when it
	// has taken something from events, closed is closed, the session has ended or ctx is done. It returns
	// false at once if the caller has to wait for these itself. If the Provider is a Progressor, the
	// caller has called BeginWait.
	Lead(ctx context.Context, events, closed <-chan struct{}) (over bool)
	// WakeLeader is called when closed has been closed.
	WakeLeader()
}

// Spinner is implemented by a Provider whose card runs in another process, which may need the processor on which
// a program polls an empty queue. Package verbs calls it, programs do not.
type Spinner interface {
	// Yield lets other threads of the host run.
	Yield()
	// Doze waits until the card says something, has said it to events, or 1 ms has passed. The caller has armed
	// the queues that it polls.
	Doze(events <-chan struct{})
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

// MRProvider makes memory regions and windows.
type MRProvider interface {
	// AllocMR makes memory that both the program and the card can access, and registers it.
	AllocMR(AllocMRRequest) (MRGrant, error)
	// RegMR registers the caller's memory; ErrUnsupported where the card cannot reach it.
	RegMR(RegMRRequest) (MRGrant, error)
	// ReregMR changes a region between two requests that use it. If it fails, nothing has changed.
	ReregMR(ReregMRRequest) error
	// DeregMR refuses a region to which windows are bound, as ReregMR does: ErrBusy.
	DeregMR(DeregMRRequest) error

	// AllocNullMR makes a region without memory, for which ReregMR is ErrInvalid.
	AllocNullMR(AllocNullMRRequest) (MRGrant, error)

	// AllocFastMR makes a region that is free: requests of the program, or MapFMR, register it.
	AllocFastMR(AllocFastMRRequest) (MRGrant, error)
	// MapFMR registers a fast region whether it is free or not, and UnmapFMR makes it free. Old keys are dead when they return.
	MapFMR(MapFMRRequest) error
	UnmapFMR(UnmapFMRRequest) error
	// CheckMRStatus says whether a check of signatures has failed since the region was registered or asked.
	CheckMRStatus(CheckMRStatusRequest) (CheckMRStatusGrant, error)
	// AllocCoherent makes memory that is a region of no PD.
	AllocCoherent(AllocCoherentRequest) (MRGrant, error)

	// AllocDM makes device memory, and RegDMMR a region of a part of it, whose grant has no memory over the service.
	AllocDM(AllocDMRequest) (AllocDMGrant, error)
	RegDMMR(RegDMMRRequest) (MRGrant, error)
	// FreeDM refuses memory of which there are regions: ErrBusy.
	FreeDM(FreeDMRequest) error

	AllocMW(AllocMWRequest) (AllocMWGrant, error)
	DeallocMW(DeallocMWRequest) error
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

// CountersProvider counts the packets of queue pairs.
type CountersProvider interface {
	CreateCounters() (CreateCountersGrant, error)
	AttachCounters(AttachCountersRequest) error
	ReadCounters(ReadCountersRequest) (ReadCountersGrant, error)
	DestroyCounters(DestroyCountersRequest) error
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

// CMProvider makes connection ids (rdma_cm), and channels of their events. What a command begins ends
// with an event. An id's state, its port and all rules are the card's. Package cm says what ids do.
type CMProvider interface {
	CreateEventChannel() (CreateEventChannelGrant, error)
	// DestroyEventChannel refuses a channel that has ids: ErrBusy.
	DestroyEventChannel(DestroyEventChannelRequest) error
	// GetCMEvent does not wait.
	GetCMEvent(GetCMEventRequest) (GetCMEventGrant, error)

	CreateID(CreateIDRequest) (CreateIDGrant, error)
	MigrateID(MigrateIDRequest) error
	SetIDOption(SetIDOptionRequest) error
	QueryID(QueryIDRequest) (QueryIDGrant, error)
	// DestroyID cancels what has begun, and drops the id's events. When it returns, no more come.
	DestroyID(DestroyIDRequest) error

	BindID(BindIDRequest) (BindIDGrant, error)
	FindRoute(FindRouteRequest) (FindRouteGrant, error)
	ResolveIDAddr(ResolveIDAddrRequest) error
	ResolveIDRoute(ResolveIDRouteRequest) error
	SetIDPath(SetIDPathRequest) error
	InitIDQPAttr(InitIDQPAttrRequest) (InitIDQPAttrGrant, error)

	ListenID(ListenIDRequest) error
	ConnectID(ConnectIDRequest) error
	AcceptID(AcceptIDRequest) error
	RejectID(RejectIDRequest) error
	DisconnectID(DisconnectIDRequest) error
	NotifyID(NotifyIDRequest) error

	JoinID(JoinIDRequest) error
	LeaveID(LeaveIDRequest) (LeaveIDGrant, error)
}

// EventReport is an asynchronous event as a card reports it.
type EventReport struct {
	Type    ring.EventType
	Port    uint8  // for events of a port
	EventID uint64 // for events of a CQ, SRQ or queue pair: the one that it was created with
}
