// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/netip"
	"os"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The requests and grants of the commands on connection ids, in their order.
type (
	// CreateEventChannelGrant is a new channel of events of ids.
	CreateEventChannelGrant struct {
		Channel Handle
		// Events is the program's end of a non-blocking socket. It is readable while there is an event: the card writes
		// a byte with the first event, and the program reads that byte when GetCMEventGrant.Drained is set, or the card
		// does if the queued events are removed. End of file means that the card is closed or has failed.
		Events *os.File
		// Ready receives a value after each write to Events, and is closed with its end, for programs in the card's
		// process; nil for others.
		Ready <-chan struct{}
	}
	// DestroyEventChannelRequest frees a channel.
	DestroyEventChannelRequest struct{ Channel Handle }
	// GetCMEventRequest requests the oldest event of a channel.
	GetCMEventRequest struct{ Channel Handle }
	// GetCMEventGrant is an event, if there was one. Drained means that no event has been left since the socket became
	// readable: the program reads a byte from it.
	GetCMEventGrant struct {
		Found, Drained bool
		Event          CMEvent
	}

	// CreateIDRequest requests an id whose events arrive at the channel.
	CreateIDRequest struct {
		Channel   Handle
		PortSpace wire.PortSpace
		QPType    ib.QPType // 0 means that of the port space
	}
	// CreateIDGrant is a new id.
	CreateIDGrant struct{ ID Handle }
	// MigrateIDRequest moves an id, with its events, to another channel.
	MigrateIDRequest struct{ ID, Channel Handle }
	// SetIDOptionRequest sets an option; the value of a boolean option is 0 or 1.
	SetIDOptionRequest struct {
		ID     Handle
		Option ib.IDOption
		Value  uint32
	}
	// QueryIDRequest queries the state of an id.
	QueryIDRequest struct{ ID Handle }
	// QueryIDGrant is the current state of an id.
	QueryIDGrant struct {
		PortSpace     wire.PortSpace
		QPType        ib.QPType
		Local, Remote netip.AddrPort // zero if unset
		OnDevice      bool           // bound to this card: its local address is one of the card's
		AH            ib.AHAttr      // to the remote address; zero until it is resolved
	}
	// DestroyIDRequest frees an id.
	DestroyIDRequest struct{ ID Handle }

	// BindIDRequest binds an id to an address of the card, or to all (0.0.0.0, ::). Port 0 means any free port. If
	// Shared is set, the port is that of the program's id with the same Whose, owned by the same user, on another card
	// of the network namespace: an id that listens on several cards is an id on each.
	BindIDRequest struct {
		ID      Handle
		Address netip.AddrPort
		Shared  bool
		Whose   uint64 // random number that the program chooses for its id
	}
	// BindIDGrant is the address with its port.
	BindIDGrant struct{ Address netip.AddrPort }
	// FindRouteRequest queries whether the host's route to a destination uses this card. Source may be zero.
	FindRouteRequest struct{ Source, Dest netip.Addr }
	// FindRouteGrant is the source address of messages to the destination.
	FindRouteGrant struct{ Source netip.Addr }
	// ResolveIDAddrRequest resolves the destination's address. It binds an unbound id, to Source if that is set.
	ResolveIDAddrRequest struct {
		ID           Handle
		Source, Dest netip.AddrPort
		Timeout      time.Duration
	}
	// ResolveIDRouteRequest resolves the route to the destination.
	ResolveIDRouteRequest struct{ ID Handle }
	// SetIDPathRequest sets the route to the destination, instead of ResolveIDRoute.
	SetIDPathRequest struct {
		ID   Handle
		Path ib.AHAttr
	}
	// InitIDQPAttrRequest requests the attributes for changing a queue pair to a state.
	InitIDQPAttrRequest struct {
		ID    Handle
		State ib.QPState
	}
	// InitIDQPAttrGrant contains these attributes.
	InitIDQPAttrGrant struct {
		Attr ib.QPAttr
		Mask ib.QPAttrMask
	}

	// ListenIDRequest makes an id accept requests. Backlog is the maximum number of waiting requests.
	ListenIDRequest struct {
		ID      Handle
		Backlog int
	}
	// ConnectIDRequest requests a connection to the destination, or its queue pair.
	ConnectIDRequest struct {
		ID    Handle
		Param ib.ConnParam
	}
	// AcceptIDRequest accepts a request, or, if Response is set, a response, which ignores Param.
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
	// NotifyIDRequest reports an asynchronous event of the id's queue pair to the connection manager.
	NotifyIDRequest struct {
		ID    Handle
		Event ib.EventType
	}

	// JoinIDRequest requests a membership of a group; the event contains Context.
	JoinIDRequest struct {
		ID      Handle
		Group   netip.Addr
		State   ib.JoinState
		Context uint64
	}
	// LeaveIDRequest ends the last membership that the id requested with this address.
	LeaveIDRequest struct {
		ID    Handle
		Group netip.Addr
	}
	// LeaveIDGrant identifies that membership.
	LeaveIDGrant struct{ Context uint64 }
)
