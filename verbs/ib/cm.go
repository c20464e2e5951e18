package ib

import (
	"github.com/roced/roced/datapath/wire"
)

// ConnParam is what a side of a connection tells the other (rdma_conn_param). For
// datagrams it has private data, and the QPN and QKey to send to.
type ConnParam struct {
	// PrivateData is the program's: at most 56 bytes with Connect and 196 with Accept; in the UDP port space
	// 180 and 136.
	PrivateData []byte
	QPN         wire.QPN
	QKey        wire.QKey // 0: the port space's, UDPQKey

	// ResponderResources is how many READs and atomics of the peer's the side serves at once, InitiatorDepth
	// how many of its own it has outstanding. In an event both are seen from the side that gets it.
	ResponderResources, InitiatorDepth uint8
	FlowControl                        bool
	RetryCount                         uint8 // 0 to 7, of both sides; Connect says it
	RNRRetryCount                      uint8 // 0 to 7, where 7 is for ever: of the peer, for requests to this side
	SRQ                                bool  // the side receives by a shared receive queue

	// Exact says that zeros in the four numbers above are meant, as in rdma_conn_param: no READs, no retries.
	// Else package cm takes 0 for what librdmacm has without parameters: as many READs and atomics as there can
	// be, and retries of 7. In an event it is true. A Provider takes the numbers as they are.
	Exact bool
}

// MaxCMPrivateData is the number of bytes of private data that a connection management message has room for: that of
// a RTU, a DREQ or a DREP.
const MaxCMPrivateData = 224

// MaxCMResources, of ConnParam's ResponderResources and InitiatorDepth, stands for as many as there can be
// (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH).
const MaxCMResources = 0xFF

// State is the kernel's join state of librdmacm's flags, as its rdma_ucm makes it; 0 for flags that there are none of.
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

// Receives says whether a member gets the group's messages. Who does not is never reported by IGMP or MLD.
func (n JoinState) Receives() bool { return n&(JoinStateFullMember|JoinStateNonMember) != 0 }
