package verbs

import (
	"github.com/roced/roced/datapath/wire"
)

// QPCap is what a queue pair can hold. What is granted is at least what was
// asked for (ibv_qp_cap).
type QPCap struct {
	MaxSendWR, MaxRecvWR   uint32
	MaxSendSGE, MaxRecvSGE uint32 // 0 stands for 1
	MaxInlineData          uint32 // bytes
}

// QPInitAttr is what a queue pair is made with (ibv_qp_init_attr).
type QPInitAttr struct {
	Type           QPType
	SendCQ, RecvCQ *CQ
	Cap            QPCap
	SQSigAll       bool // every send completes to the CQ, signaled or not
	// BlockSelfMcastLB keeps the queue pair's own messages to a group that it is attached
	// to from coming back to it (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).
	BlockSelfMcastLB bool
}

// QPAttr are the attributes that Modify sets and Query gives (ibv_qp_attr).
type QPAttr struct {
	State     QPState
	CurState  QPState // what the caller takes the state to be
	PKeyIndex uint16
	Port      uint8
	QKey      wire.QKey
	SQPSN     wire.PSN // of the first packet sent
	Cap       QPCap
	// EnSQDAsyncNotify asks for an event when the send queue has drained.
	EnSQDAsyncNotify bool
}
