// SPDX-License-Identifier: Apache-2.0

package ib

import (
	"github.com/roced/roced/datapath/wire"
)

// ConnParam are the parameters that an end of a connection sends to the other (rdma_conn_param). For datagrams these
// are private data, and the QPN and QKey of the destination.
type ConnParam struct {
	// PrivateData is data of the program: at most 56 bytes with Connect and 196 with Accept; in port space UDP 180 and
	// 136.
	PrivateData []byte
	QPN         wire.QPN
	QKey        wire.QKey // 0 means that of the port space, UDPQKey

	// ResponderResources is the number of READs and atomics of the peer that this end accepts at once, InitiatorDepth
	// the maximum number of its own outstanding ones. In an event both are from the view of the receiving end.
	ResponderResources, InitiatorDepth uint8
	FlowControl                        bool
	RetryCount                         uint8 // 0 to 7, for both ends; set by Connect
	RNRRetryCount                      uint8 // 0 to 7, where 7 means unlimited: retries of the peer, for requests to this end
	SRQ                                bool  // this end uses a shared receive queue

	// Exact means that zeros in the four numbers above are literal, as in rdma_conn_param: no READs, no retries.
	// Otherwise package cm replaces 0 by librdmacm's defaults: the maximum number of READs and atomics, and 7 retries.
	// In an event it is true. A Provider uses the numbers as they are.
	Exact bool
}

// MaxCMPrivateData is the maximum length in bytes of private data in a connection management message: in an RTU, a DREQ
// or a DREP.
const MaxCMPrivateData = 224

// MaxCMResources, in ConnParam's ResponderResources and InitiatorDepth, means the maximum (RDMA_MAX_RESP_RES,
// RDMA_MAX_INIT_DEPTH).
const MaxCMResources = 0xFF

// State returns the kernel's join state for librdmacm's flags, as rdma_ucm does; 0 for unknown flags.
func (n JoinFlags) State() JoinState {
	switch n {
	case JoinFullMember:
		return JoinStateFullMember
	case JoinSendOnlyFullMember:
		return JoinStateSendOnlyFullMember
	}
	return 0
}

// AllJoinStates are the bits of a join state.
const AllJoinStates = JoinStateFullMember | JoinStateNonMember | JoinStateSendOnlyNonMember | JoinStateSendOnlyFullMember

// Receives reports whether a member receives the group's messages. Send-only members are never reported by IGMP or MLD.
func (n JoinState) Receives() bool { return n&(JoinStateFullMember|JoinStateNonMember) != 0 }
