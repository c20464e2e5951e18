package verbs

import (
	"github.com/roced/roced/datapath/wire"
)

// QPCap is the capacity of a queue pair's queues (ibv_qp_cap). CreateQP grants at least what is
// asked for.
type QPCap struct {
	MaxSendWR, MaxRecvWR   uint32
	MaxSendSGE, MaxRecvSGE uint32 // 0 stands for 1
	MaxInlineData          uint32 // bytes
}

// QPInitAttr are the attributes that a queue pair is created with (ibv_qp_init_attr).
type QPInitAttr struct {
	// Type is QPTypeUD. QPTypeGSI is for a privileged program (CAP_NET_RAW): QP 1 of the card, a UD
	// queue pair that has the Q_Key 0x80010000; ErrBusy if another program has it, or connection ids of
	// the card are in use. Until it is closed, the program answers peers' connection management instead
	// of the card.
	Type           QPType
	SendCQ, RecvCQ *CQ
	// SRQ gives the queue pair its receives; it then has no receive queue, and MaxRecvWR and
	// MaxRecvSGE do not count. It may be of another PD.
	SRQ      *SRQ
	Cap      QPCap
	Port     uint8 // of a GSI queue pair: 1 (port_num of ib_qp_init_attr)
	SQSigAll bool  // every send has a completion, signaled or not
	// BlockSelfMcastLB keeps the queue pair from receiving its own messages to a group that it is
	// attached to (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).
	BlockSelfMcastLB bool
}

// QPAttr are the attributes that Modify sets and Query gives (ibv_qp_attr).
type QPAttr struct {
	State     QPState
	CurState  QPState // the state that the caller expects
	PKeyIndex uint16
	Port      uint8
	QKey      wire.QKey
	SQPSN     wire.PSN // of the first packet sent
	Cap       QPCap
	// EnSQDAsyncNotify asks for EventSQDrained when the send queue has drained: the card has
	// finished the requests that it had begun, and those that are left wait for RTS.
	EnSQDAsyncNotify bool
}

// take copies the attributes in the mask.
func (a *QPAttr) take(from *QPAttr, mask QPAttrMask) {
	if mask&QPAttrState != 0 {
		a.State = from.State
	}
	if mask&QPAttrCurState != 0 {
		a.CurState = from.CurState
	}
	if mask&QPAttrPKeyIndex != 0 {
		a.PKeyIndex = from.PKeyIndex
	}
	if mask&QPAttrPort != 0 {
		a.Port = from.Port
	}
	if mask&QPAttrQKey != 0 {
		a.QKey = from.QKey
	}
	if mask&QPAttrSQPSN != 0 {
		a.SQPSN = from.SQPSN
	}
	if mask&QPAttrEnSQDAsyncNotify != 0 {
		a.EnSQDAsyncNotify = from.EnSQDAsyncNotify
	}
}
