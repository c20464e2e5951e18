package ib

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

// QPAttr are the attributes that Modify sets and Query gives (ibv_qp_attr). Connected queue pairs have
// those from AHAttr on; datagrams have the Q_Key.
type QPAttr struct {
	State     QPState
	CurState  QPState // the state that the caller expects
	PKeyIndex uint16
	Port      uint8
	QKey      wire.QKey
	SQPSN     wire.PSN // of the first packet sent; from RTS on, of the next
	Cap       QPCap
	// EnSQDAsyncNotify asks for EventSQDrained when the send queue has drained: the card has
	// finished the requests that it had begun, and those that are left wait for RTS.
	EnSQDAsyncNotify bool

	AHAttr      AHAttr      // of the peer (QPAttrAV); the card follows changes of route and neighbour
	DestQPN     wire.QPN    // the peer's queue pair
	PathMTU     wire.MTU    // the longest payload of a packet, for both; at most the port's active MTU
	RQPSN       wire.PSN    // of the first packet from the peer; from RTR on, of the next
	AccessFlags AccessFlags // what the peer may do: AccessRemoteWrite, AccessRemoteRead, AccessRemoteAtomic
	// PathMigState is kept and given back; without an alternate path, which RoCE does not have, there is
	// nothing to migrate to.
	PathMigState PathMigState

	// Of RC only. The two of reads and atomics are at most DeviceAttr.MaxQPRDAtom.
	MaxRDAtomic     uint8 // own reads and atomics that are outstanding at once; a long read is several, of up to 256 packets each
	MaxDestRDAtomic uint8 // the peer's
	MinRNRTimer     uint8 // how long a peer that finds no receive is to wait: RNRTimerCode of a time; 0 is 655.36 ms
	Timeout         uint8 // for an answer: TimeoutCode of a time, 4.096 µs × 2ⁿ, n to 31; 0 is for ever
	RetryCnt        uint8 // after how many timeouts a request fails, to 7
	RNRRetry        uint8 // after how many "receiver not ready"; 7 is for ever
}

// Set copies the attributes in the mask.
func (a *QPAttr) Set(from *QPAttr, mask QPAttrMask) {
	set(mask&QPAttrState, &a.State, from.State)
	set(mask&QPAttrCurState, &a.CurState, from.CurState)
	set(mask&QPAttrEnSQDAsyncNotify, &a.EnSQDAsyncNotify, from.EnSQDAsyncNotify)
	set(mask&QPAttrAccessFlags, &a.AccessFlags, from.AccessFlags)
	set(mask&QPAttrPKeyIndex, &a.PKeyIndex, from.PKeyIndex)
	set(mask&QPAttrPort, &a.Port, from.Port)
	set(mask&QPAttrQKey, &a.QKey, from.QKey)
	set(mask&QPAttrAV, &a.AHAttr, from.AHAttr)
	set(mask&QPAttrPathMTU, &a.PathMTU, from.PathMTU)
	set(mask&QPAttrTimeout, &a.Timeout, from.Timeout)
	set(mask&QPAttrRetryCnt, &a.RetryCnt, from.RetryCnt)
	set(mask&QPAttrRNRRetry, &a.RNRRetry, from.RNRRetry)
	set(mask&QPAttrRQPSN, &a.RQPSN, from.RQPSN)
	set(mask&QPAttrMaxQPRDAtomic, &a.MaxRDAtomic, from.MaxRDAtomic)
	set(mask&QPAttrMinRNRTimer, &a.MinRNRTimer, from.MinRNRTimer)
	set(mask&QPAttrSQPSN, &a.SQPSN, from.SQPSN)
	set(mask&QPAttrMaxDestRDAtomic, &a.MaxDestRDAtomic, from.MaxDestRDAtomic)
	set(mask&QPAttrPathMigState, &a.PathMigState, from.PathMigState)
	set(mask&QPAttrDestQPN, &a.DestQPN, from.DestQPN)
}

func set[T any](wanted QPAttrMask, to *T, from T) {
	if wanted != 0 {
		*to = from
	}
}

// SRQAttr are the attributes of an SRQ (ibv_srq_attr).
type SRQAttr struct {
	MaxWR  uint32 // receives that can wait
	MaxSGE uint32 // of a receive; fixed when the SRQ is created
	Limit  uint32 // receives; 0: none is armed
}
