package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
)

// QPType is a transport service, with libibverbs' numbers.
type QPType uint8

// QPTypeUD is unreliable datagrams, the one service that is built.
const QPTypeUD QPType = 4

// QPState is a queue pair's state, with libibverbs' numbers.
type QPState uint8

// The states of IBA 10.3.1.
const (
	QPStateReset QPState = iota
	QPStateInit
	QPStateRTR // ready to receive
	QPStateRTS // ready to send
	QPStateSQD // send queue drained
	QPStateSQE // send queue error
	QPStateErr
)

var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// String names the state as the specification does.
func (s QPState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("STATE(%d)", uint8(s))
}

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

// QPAttrMask says which attributes count, with libibverbs' numbers.
type QPAttrMask uint32

// The attributes that datagrams have.
const (
	QPAttrState            QPAttrMask = 1 << 0
	QPAttrCurState         QPAttrMask = 1 << 1
	QPAttrEnSQDAsyncNotify QPAttrMask = 1 << 2 // needs asynchronous events: ErrUnsupported as yet
	QPAttrPKeyIndex        QPAttrMask = 1 << 4
	QPAttrPort             QPAttrMask = 1 << 5
	QPAttrQKey             QPAttrMask = 1 << 6
	QPAttrSQPSN            QPAttrMask = 1 << 16
	QPAttrCap              QPAttrMask = 1 << 19
)

// attrNames is in the order of the bits.
var attrNames = []struct {
	bit  QPAttrMask
	name string
}{
	{QPAttrState, "state"}, {QPAttrCurState, "current state"}, {QPAttrEnSQDAsyncNotify, "SQD event"}, {QPAttrPKeyIndex, "P_Key index"}, {QPAttrPort, "port"},
	{QPAttrQKey, "Q_Key"}, {QPAttrSQPSN, "SQ PSN"}, {QPAttrCap, "capabilities"},
}

// String lists the attributes in the mask.
func (m QPAttrMask) String() string {
	text := ""
	for _, a := range attrNames {
		if m&a.bit != 0 {
			text += ", " + a.name
			m &^= a.bit
		}
	}
	if m != 0 {
		text += fmt.Sprintf(", 0x%x", uint32(m))
	}
	if text == "" {
		return "nothing"
	}
	return text[2:]
}
