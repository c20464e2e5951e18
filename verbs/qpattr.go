package verbs

import (
	"github.com/roced/roced/verbs/ib"
)

// QPCap is the capacity of a queue pair's queues (ibv_qp_cap). CreateQP grants at least what is
// asked for.
//
// Its fields: [ib.QPCap].
type QPCap = ib.QPCap

// QPInitAttr are the attributes that a queue pair is created with (ibv_qp_init_attr).
type QPInitAttr struct {
	// Type is QPTypeUD, QPTypeRC, QPTypeUC or QPTypeXRCSend, of which RecvCQ and SRQ do not count; or QPTypeXRCRecv, for
	// XRCD.CreateQP. QPTypeGSI is for a privileged program (CAP_NET_RAW): QP 1 of the card, a UD
	// queue pair that has the Q_Key 0x80010000; ErrBusy if another program has it, or connection ids of
	// the card are in use. Until it is closed, the program answers peers' connection management instead
	// of the card.
	Type           QPType
	SendCQ, RecvCQ *CQ
	// SRQ gives the queue pair its receives; it then has no receive queue, and MaxRecvWR and
	// MaxRecvSGE do not count. It may be of another PD.
	SRQ      *SRQ
	XRCD     *XRCD // of type QPTypeXRCRecv, where a package makes the queue pair: see cm.ID.CreateQP
	Cap      QPCap
	Port     uint8 // of a GSI queue pair: 1 (port_num of ib_qp_init_attr)
	SQSigAll bool  // every send has a completion, signaled or not
	// BlockSelfMcastLB keeps the queue pair from receiving its own messages to a group that it is
	// attached to (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).
	BlockSelfMcastLB bool
	// EventHandler gets the queue pair's asynchronous events, instead of GetAsyncEvent (event_handler of
	// ib_qp_init_attr). A goroutine of the context calls it, under no lock, and not twice at once.
	EventHandler func(AsyncEvent)
	QPContext    any // what QP.QPContext gives, for the program's own use
}

// QPAttr are the attributes that Modify sets and Query gives (ibv_qp_attr). Connected queue pairs have
// those from AHAttr on; datagrams have the Q_Key.
//
// Its fields: [ib.QPAttr].
type QPAttr = ib.QPAttr
