// SPDX-License-Identifier: Apache-2.0

package ib

import (
	"github.com/roced/roced/datapath/wire"
)

// QPCap is the capacity of a queue pair's queues (ibv_qp_cap). CreateQP grants at least the requested capacity.
type QPCap struct {
	MaxSendWR, MaxRecvWR   uint32
	MaxSendSGE, MaxRecvSGE uint32 // 0 means 1
	MaxInlineData          uint32 // bytes
}

// QPAttr are the attributes that Modify sets and Query returns (ibv_qp_attr). Connected queue pairs use the fields from
// AHAttr on; datagrams use the Q_Key.
type QPAttr struct {
	State     QPState
	CurState  QPState // the state that the caller expects
	PKeyIndex uint16
	Port      uint8
	QKey      wire.QKey
	SQPSN     wire.PSN // of the first packet sent; after RTS, of the next one
	Cap       QPCap
	// EnSQDAsyncNotify requests EventSQDrained when the send queue has drained: the card has finished the requests in
	// progress, and the remaining ones wait for RTS.
	EnSQDAsyncNotify bool

	AHAttr      AHAttr      // of the peer (QPAttrAV); the card follows changes of route and neighbour
	DestQPN     wire.QPN    // the peer's queue pair
	PathMTU     wire.MTU    // maximum payload of a packet, in both directions; at most the port's active MTU
	RQPSN       wire.PSN    // of the first packet from the peer; after RTR, of the next one
	AccessFlags AccessFlags // access of the peer: AccessRemoteWrite, AccessRemoteRead, AccessRemoteAtomic
	// PathMigState is stored and returned; RoCE has no alternate paths, so there is no migration.
	PathMigState PathMigState

	// For RC only. MaxRDAtomic and MaxDestRDAtomic are at most DeviceAttr.MaxQPRDAtom.
	MaxRDAtomic     uint8 // outstanding reads and atomics of this end; a long read counts as several, of up to 256 packets each
	MaxDestRDAtomic uint8 // outstanding reads and atomics of the peer
	MinRNRTimer     uint8 // time that a peer waits after an RNR NAK: RNRTimerCode of a duration; 0 is 655.36 ms
	Timeout         uint8 // local ACK timeout: TimeoutCode of a duration, 4.096 µs × 2ⁿ, n to 31; 0 is forever
	RetryCnt        uint8 // retries after timeouts before a request fails, at most 7
	RNRRetry        uint8 // retries after RNR NAKs; 7 is unlimited
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
	MaxWR  uint32 // maximum number of queued receives
	MaxSGE uint32 // per receive; fixed at creation
	Limit  uint32 // receives; 0: not armed
}
