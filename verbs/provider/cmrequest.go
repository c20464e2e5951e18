package provider

import (
	"net/netip"
	"os"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The requests and grants of the commands about connection ids, in their order.
type (
	// CreateEventChannelGrant is a new channel of events of ids.
	CreateEventChannelGrant struct {
		Channel Handle
		// Events is the program's end of a socket, which does not block. It is readable while there is an
		// event: the card writes a byte when the first comes, and the program reads that byte when
		// GetCMEventGrant.Drained says so, or the card does when those that wait go away by themselves. It
		// ends when the card is gone.
		Events *os.File
		// Ready has a value after each write to Events, and is closed with its end, for programs in the card's process;
		// nil for others.
		Ready <-chan struct{}
	}
	// DestroyEventChannelRequest frees a channel.
	DestroyEventChannelRequest struct{ Channel Handle }
	// GetCMEventRequest asks for the oldest event of a channel.
	GetCMEventRequest struct{ Channel Handle }
	// GetCMEventGrant is an event, if there was one. Drained says that none is left since the socket
	// became readable: the program reads a byte from it.
	GetCMEventGrant struct {
		Found, Drained bool
		Event          CMEvent
	}

	// CreateIDRequest asks for an id, whose events come through the channel.
	CreateIDRequest struct {
		Channel   Handle
		PortSpace wire.PortSpace
		QPType    ib.QPType // 0: that of the port space
	}
	// CreateIDGrant is a new id.
	CreateIDGrant struct{ ID Handle }
	// MigrateIDRequest moves an id, with its events, to another channel.
	MigrateIDRequest struct{ ID, Channel Handle }
	// SetIDOptionRequest sets an option; of a switch the value is 0 or 1.
	SetIDOptionRequest struct {
		ID     Handle
		Option ib.IDOption
		Value  uint32
	}
	// QueryIDRequest asks what an id is.
	QueryIDRequest struct{ ID Handle }
	// QueryIDGrant is what an id is now.
	QueryIDGrant struct {
		PortSpace     wire.PortSpace
		QPType        ib.QPType
		Local, Remote netip.AddrPort // zero as long as it has none
		OnDevice      bool           // it is bound to this card: its local address is one of the card's
		AH            ib.AHAttr      // to the remote address; zero as long as that is not resolved
	}
	// DestroyIDRequest frees an id.
	DestroyIDRequest struct{ ID Handle }

	// BindIDRequest binds an id to an address of the card, or to all (0.0.0.0, ::). Port 0 is for any
	// free one. With Shared the port is that of the same id of the program's on another card of the network
	// namespace, one of the same user with the same Whose: an id that listens on several cards is an id on each.
	BindIDRequest struct {
		ID      Handle
		Address netip.AddrPort
		Shared  bool
		Whose   uint64 // a number of the program's for its id, at random
	}
	// BindIDGrant is the address with its port.
	BindIDGrant struct{ Address netip.AddrPort }
	// FindRouteRequest asks whether the host reaches a destination through this card. Source may be zero.
	FindRouteRequest struct{ Source, Dest netip.Addr }
	// FindRouteGrant is the card's address that a message has that is sent there.
	FindRouteGrant struct{ Source netip.Addr }
	// ResolveIDAddrRequest has the destination's address resolved. It binds an id that is not bound, to
	// Source if that is set.
	ResolveIDAddrRequest struct {
		ID           Handle
		Source, Dest netip.AddrPort
		Timeout      time.Duration
	}
	// ResolveIDRouteRequest has the route to the destination resolved.
	ResolveIDRouteRequest struct{ ID Handle }
	// SetIDPathRequest gives the route to the destination, in place of ResolveIDRoute.
	SetIDPathRequest struct {
		ID   Handle
		Path ib.AHAttr
	}
	// InitIDQPAttrRequest asks for the attributes by which a queue pair comes to a state.
	InitIDQPAttrRequest struct {
		ID    Handle
		State ib.QPState
	}
	// InitIDQPAttrGrant is these attributes.
	InitIDQPAttrGrant struct {
		Attr ib.QPAttr
		Mask ib.QPAttrMask
	}

	// ListenIDRequest has an id take requests. Backlog is how many may wait.
	ListenIDRequest struct {
		ID      Handle
		Backlog int
	}
	// ConnectIDRequest asks the destination for a connection, or for its queue pair.
	ConnectIDRequest struct {
		ID    Handle
		Param ib.ConnParam
	}
	// AcceptIDRequest accepts a request. Response: it accepts a response instead, which takes no Param.
	AcceptIDRequest struct {
		ID       Handle
		Response bool
		Param    ib.ConnParam
	}
	// RejectIDRequest rejects a request.
	RejectIDRequest struct {
		ID          Handle
		PrivateData []byte
	}
	// DisconnectIDRequest ends a connection.
	DisconnectIDRequest struct{ ID Handle }
	// NotifyIDRequest tells the connection manager of an asynchronous event of the id's queue pair.
	NotifyIDRequest struct {
		ID    Handle
		Event ib.EventType
	}

	// JoinIDRequest asks for a membership of a group; the event carries Context.
	JoinIDRequest struct {
		ID      Handle
		Group   netip.Addr
		State   ib.JoinState
		Context uint64
	}
	// LeaveIDRequest ends the last membership that the id asked for with this address.
	LeaveIDRequest struct {
		ID    Handle
		Group netip.Addr
	}
	// LeaveIDGrant says which it was.
	LeaveIDGrant struct{ Context uint64 }
)
