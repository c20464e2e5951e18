// SPDX-License-Identifier: Apache-2.0

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

// MaxResources, in ConnParam's ResponderResources and InitiatorDepth, means the maximum: the device's for Connect, the
// peer's request for Accept (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH). Connect refuses other numbers above the device's;
// Accept treats them as the maximum.
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
	// EventConnectResponse: the peer has accepted. It, EventConnectError, EventRejected, EventDisconnected and
	// EventTimewaitExit occur for connections.
	EventConnectResponse = ib.CMEventConnectResponse
	EventConnectError    = ib.CMEventConnectError
	EventUnreachable     = ib.CMEventUnreachable
	EventRejected        = ib.CMEventRejected
	EventEstablished     = ib.CMEventEstablished
	EventDisconnected    = ib.CMEventDisconnected
	EventDeviceRemoval   = ib.CMEventDeviceRemoval
	EventMulticastJoin   = ib.CMEventMulticastJoin
	EventMulticastError  = ib.CMEventMulticastError
	EventAddrChange      = ib.CMEventAddrChange // does not occur: an address is removed together with its GID
	EventTimewaitExit    = ib.CMEventTimewaitExit
)
