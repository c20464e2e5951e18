package verbs

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/provider"
)

// What connection ids and their events are made of (rdma_cm). Package cm has the ids themselves.
type (
	// PortSpace is rdma_port_space. Values: PortSpaceTCP or PortSpaceUDP.
	PortSpace = wire.PortSpace

	// CMEventType is rdma_cm_event_type: what has happened to an id. Values: CMEventAddrResolved to
	// CMEventTimewaitExit, which go doc verbs.CMEventAddrResolved lists.
	CMEventType = ring.CMEventType

	// IDOption is RDMA_OPTION_ID_*: what can be set of an id. Values: IDOptionTOS, IDOptionReuseAddr or
	// IDOptionAFOnly.
	IDOption = ring.IDOption
)

// The port spaces of rdma_cm.
const (
	PortSpaceTCP = wire.PortSpaceTCP // connections
	PortSpaceUDP = wire.PortSpaceUDP // datagrams
)

// The events of ids.
const (
	CMEventAddrResolved    = ring.CMEventAddrResolved
	CMEventAddrError       = ring.CMEventAddrError
	CMEventRouteResolved   = ring.CMEventRouteResolved
	CMEventRouteError      = ring.CMEventRouteError
	CMEventConnectRequest  = ring.CMEventConnectRequest
	CMEventConnectResponse = ring.CMEventConnectResponse
	CMEventConnectError    = ring.CMEventConnectError
	CMEventUnreachable     = ring.CMEventUnreachable
	CMEventRejected        = ring.CMEventRejected
	CMEventEstablished     = ring.CMEventEstablished
	CMEventDisconnected    = ring.CMEventDisconnected
	CMEventDeviceRemoval   = ring.CMEventDeviceRemoval
	CMEventMulticastJoin   = ring.CMEventMulticastJoin
	CMEventMulticastError  = ring.CMEventMulticastError
	CMEventAddrChange      = ring.CMEventAddrChange
	CMEventTimewaitExit    = ring.CMEventTimewaitExit
)

// The options of ids.
const (
	IDOptionTOS       = ring.IDOptionTOS // the traffic class of what is sent, 8 bits
	IDOptionReuseAddr = ring.IDOptionReuseAddr
	IDOptionAFOnly    = ring.IDOptionAFOnly
)

// MaxCMPrivateData is the most private data that a connection management message has room for, in bytes:
// that of a RTU, a DREQ or a DREP.
const MaxCMPrivateData = 224

// CMMaxResources, of ConnParam's ResponderResources and InitiatorDepth, is as many as there can be
// (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH).
const CMMaxResources = 0xFF

// ConnParam is what a side of a connection tells the other (rdma_conn_param). Datagrams have private data,
// QPN and QKey: what they are to be sent to.
//
// Its fields: [provider.ConnParam].
type ConnParam = provider.ConnParam
