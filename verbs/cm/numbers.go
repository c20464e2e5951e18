package cm

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The numbers of rdma_cm, which package ib defines for requests to the card.
type (
	// PortSpace is rdma_port_space. Values: PortSpaceTCP or PortSpaceUDP.
	PortSpace = wire.PortSpace

	// EventType is rdma_cm_event_type; its String is rdma_event_str. Values: EventAddrResolved to
	// EventTimewaitExit, which go doc cm.EventAddrResolved lists.
	EventType = ib.CMEventType

	ConnParam = ib.ConnParam // rdma_conn_param
)

// MaxResources, of ConnParam's ResponderResources and InitiatorDepth, is as many as there can be: with Connect
// those of the device, with Accept those that the peer asks for (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH). Other
// numbers above the device's are refused by Connect, and stand for all with Accept.
const MaxResources = ib.MaxCMResources

// The port spaces.
const (
	PortSpaceTCP = wire.PortSpaceTCP // connections
	PortSpaceUDP = wire.PortSpaceUDP // datagrams
)

// The events.
const (
	EventAddrResolved   = ib.CMEventAddrResolved
	EventAddrError      = ib.CMEventAddrError
	EventRouteResolved  = ib.CMEventRouteResolved
	EventRouteError     = ib.CMEventRouteError
	EventConnectRequest = ib.CMEventConnectRequest
	// EventConnectResponse: the peer has accepted. It, and EventConnectError, EventRejected, EventDisconnected
	// and EventTimewaitExit, are of connections.
	EventConnectResponse = ib.CMEventConnectResponse
	EventConnectError    = ib.CMEventConnectError
	EventUnreachable     = ib.CMEventUnreachable
	EventRejected        = ib.CMEventRejected
	EventEstablished     = ib.CMEventEstablished
	EventDisconnected    = ib.CMEventDisconnected
	EventDeviceRemoval   = ib.CMEventDeviceRemoval
	EventMulticastJoin   = ib.CMEventMulticastJoin
	EventMulticastError  = ib.CMEventMulticastError
	EventAddrChange      = ib.CMEventAddrChange // does not come: an address that goes takes its GID along
	EventTimewaitExit    = ib.CMEventTimewaitExit
)
