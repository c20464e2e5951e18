package verbs

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/ib"
)

// What connection ids and their events are made of (rdma_cm). Package cm has the ids themselves.
type (
	// PortSpace is rdma_port_space. Values: PortSpaceTCP or PortSpaceUDP.
	PortSpace = wire.PortSpace
)

// The port spaces of rdma_cm.
const (
	PortSpaceTCP = wire.PortSpaceTCP // connections
	PortSpaceUDP = wire.PortSpaceUDP // datagrams
)

// CMRejectReason is why a peer has rejected a connection (ib_cm_rej_reason); CMRejectConsumer and
// CMRejectNobodyListens are those that programs meet most.
type CMRejectReason = wire.RejectReason

// The reasons that programs meet most.
const (
	CMRejectNobodyListens = wire.RejectServiceID
	CMRejectConsumer      = wire.RejectConsumer
)

// MaxCMPrivateData is the most private data that a connection management message has room for, in bytes:
// that of a RTU, a DREQ or a DREP.
const MaxCMPrivateData = 224

// CMMaxResources, of ConnParam's ResponderResources and InitiatorDepth, is as many as there can be
// (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH).
const CMMaxResources = 0xFF

// ConnParam is what a side of a connection tells the other (rdma_conn_param). For datagrams it has private
// data, and the QPN and QKey to send to.
//
// Its fields: [ib.ConnParam].
type ConnParam = ib.ConnParam
