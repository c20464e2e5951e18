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
	Type           QPType
	SendCQ, RecvCQ *CQ
	Cap            QPCap
	SQSigAll       bool // every send has a completion, signaled or not
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
	// EnSQDAsyncNotify asks for an event when the send queue has drained.
	EnSQDAsyncNotify bool
}
