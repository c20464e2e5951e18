// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"github.com/roced/roced/verbs/ib"
)

// QPCap is the capacity of a queue pair's queues (ibv_qp_cap). CreateQP grants at least the requested capacity.
//
// See [ib.QPCap] for its fields.
type QPCap = ib.QPCap

// QPInitAttr are the attributes that a queue pair is created with (ibv_qp_init_attr).
type QPInitAttr struct {
	// Type is QPTypeUD, QPTypeRC, QPTypeUC or QPTypeXRCSend, which ignores RecvCQ and SRQ; or QPTypeXRCRecv, for
	// XRCD.CreateQP. QPTypeGSI requires a privileged program (CAP_NET_RAW): it is QP 1 of the card, a UD queue pair
	// with the Q_Key 0x80010000. ErrBusy if another program has QP 1, or connection ids of the card are in use. Until
	// it is closed, the program handles peers' connection management instead of the card.
	Type           QPType
	SendCQ, RecvCQ *CQ
	// SRQ supplies the queue pair's receives; the queue pair then has no receive queue and ignores MaxRecvWR and
	// MaxRecvSGE. The SRQ may belong to another PD.
	SRQ      *SRQ
	XRCD     *XRCD // for QPTypeXRCRecv if a package creates the queue pair: see cm.ID.CreateQP
	Cap      QPCap
	Port     uint8 // of a GSI queue pair: 1 (port_num of ib_qp_init_attr)
	SQSigAll bool  // every send has a completion, signaled or not
	// BlockSelfMcastLB prevents the queue pair from receiving its own messages to a group that it is attached to
	// (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).
	BlockSelfMcastLB bool
	// EventHandler receives the queue pair's asynchronous events, instead of GetAsyncEvent (event_handler of
	// ib_qp_init_attr). A goroutine of the context calls it without locks; its calls do not overlap.
	EventHandler func(AsyncEvent)
	QPContext    any // returned by QP.QPContext, for the program's own use
}

// QPAttr are the attributes that Modify sets and Query returns (ibv_qp_attr). Connected queue pairs use the fields from
// AHAttr on; datagrams use the Q_Key.
//
// See [ib.QPAttr] for its fields.
type QPAttr = ib.QPAttr
