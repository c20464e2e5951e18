package cm

import "github.com/roced/roced/verbs"

// The numbers of rdma_cm, which package verbs has for what it gives the card.
type (
	// PortSpace is rdma_port_space. Values: PortSpaceTCP or PortSpaceUDP.
	PortSpace = verbs.PortSpace

	// EventType is rdma_cm_event_type; its String is rdma_event_str. Values: EventAddrResolved to
	// EventTimewaitExit, which go doc cm.EventAddrResolved lists.
	EventType = verbs.CMEventType

	ConnParam = verbs.ConnParam // rdma_conn_param
)

// MaxResources, of ConnParam's ResponderResources and InitiatorDepth, is as many as there can be: with Connect
// those of the device, with Accept those that the peer asks for (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH). Other
// numbers above the device's are refused by Connect, and stand for all with Accept.
const MaxResources = verbs.CMMaxResources

// The port spaces.
const (
	PortSpaceTCP = verbs.PortSpaceTCP // connections
	PortSpaceUDP = verbs.PortSpaceUDP // datagrams
)

// The events.
const (
	EventAddrResolved   = verbs.CMEventAddrResolved
	EventAddrError      = verbs.CMEventAddrError
	EventRouteResolved  = verbs.CMEventRouteResolved
	EventRouteError     = verbs.CMEventRouteError
	EventConnectRequest = verbs.CMEventConnectRequest
	// EventConnectResponse: the peer has accepted. It, and EventConnectError, EventRejected, EventDisconnected
	// and EventTimewaitExit, are of connections.
	EventConnectResponse = verbs.CMEventConnectResponse
	EventConnectError    = verbs.CMEventConnectError
	EventUnreachable     = verbs.CMEventUnreachable
	EventRejected        = verbs.CMEventRejected
	EventEstablished     = verbs.CMEventEstablished
	EventDisconnected    = verbs.CMEventDisconnected
	EventDeviceRemoval   = verbs.CMEventDeviceRemoval
	EventMulticastJoin   = verbs.CMEventMulticastJoin
	EventMulticastError  = verbs.CMEventMulticastError
	EventAddrChange      = verbs.CMEventAddrChange // does not come: an address that goes takes its GID along
	EventTimewaitExit    = verbs.CMEventTimewaitExit
)
