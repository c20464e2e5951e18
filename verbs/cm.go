package verbs

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
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
type ConnParam struct {
	// PrivateData is the program's: at most 56 bytes with Connect and 196 with Accept; in the UDP port space
	// 180 and 136.
	PrivateData []byte
	QPN         wire.QPN
	QKey        wire.QKey // 0: the port space's, UDPQKey

	// ResponderResources is how many READs and atomics of the peer's the side serves at once, InitiatorDepth
	// how many of its own it has outstanding. In an event both are seen from the side that gets it.
	ResponderResources, InitiatorDepth uint8
	FlowControl                        bool
	RetryCount                         uint8 // 0 to 7, of both sides; Connect says it
	RNRRetryCount                      uint8 // 0 to 7, where 7 is for ever: of the peer, for requests to this side
	SRQ                                bool  // the side receives by a shared receive queue

	// Exact says that zeros in the four numbers above are meant, as in rdma_conn_param: no READs, no retries.
	// Else package cm takes 0 for what librdmacm has without parameters: as many READs and atomics as there can
	// be, and retries of 7. In an event it is true. A Provider takes the numbers as they are.
	Exact bool
}

// CMEvent is an event of an id, as a card reports it (rdma_cm_event).
type CMEvent struct {
	Type CMEventType
	// Status is 0, or why something failed: an errno below 0, or the reason that the peer gave, above 0.
	Status   int32
	ID       Handle // of a request: the new one
	Listener Handle // of a request, else 0
	Context  uint64 // of a join: the request's
	// AH, QPN and QKey are the peer's or the group's, to send datagrams to (rdma_ud_param).
	AH AHAttr
	// ConnParam is what the peer says. Behind what its program wrote in PrivateData there are zeros.
	ConnParam
}
