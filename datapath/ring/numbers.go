package ring

// This file, and cmnumbers.go for connection ids, define every number that programs and the card
// exchange, with the values of libibverbs (infiniband/verbs.h; where that has none, the kernel's
// ib_verbs.h) and librdmacm. The engine uses them directly, package verbs exports them under the same
// names, and ring.h repeats them for C. Numbers that the card does not use yet are included, so that
// the lists are complete.

// Opcode is the operation of a send work request (ibv_wr_opcode).
type Opcode uint8

// The operations.
const (
	WRRDMAWrite         Opcode = 0
	WRRDMAWriteWithImm  Opcode = 1
	WRSend              Opcode = 2
	WRSendWithImm       Opcode = 3
	WRRDMARead          Opcode = 4
	WRAtomicCmpAndSwp   Opcode = 5
	WRAtomicFetchAndAdd Opcode = 6
	WRLocalInv          Opcode = 7
	WRBindMW            Opcode = 8
	WRSendWithInv       Opcode = 9
)

// SendFlags are the flags of a send work request (ibv_send_flags).
type SendFlags uint8

// The send flags.
const (
	SendFence     SendFlags = 1 << 0 // RC: not before the answers to reads and atomics
	SendSignaled  SendFlags = 1 << 1
	SendSolicited SendFlags = 1 << 2
	SendInline    SendFlags = 1 << 3 // data is copied when posted: the memory can be reused at once
)

// WCStatus says how a work request ended (ibv_wc_status).
type WCStatus uint8

// The statuses.
const (
	// WCSuccess of a send means that the card has finished with the request and its memory. A
	// datagram is not acknowledged: a message to a neighbour that has gone, or while the link is
	// down, is dropped and still completes with success, like a message that is lost on the
	// network. The card counts it (hca's Statistics: unreachable, link_down).
	WCSuccess        WCStatus = 0
	WCLocLenErr      WCStatus = 1
	WCLocQPOpErr     WCStatus = 2
	WCLocEECOpErr    WCStatus = 3
	WCLocProtErr     WCStatus = 4
	WCWRFlushErr     WCStatus = 5
	WCMWBindErr      WCStatus = 6
	WCBadRespErr     WCStatus = 7
	WCLocAccessErr   WCStatus = 8
	WCRemInvReqErr   WCStatus = 9
	WCRemAccessErr   WCStatus = 10
	WCRemOpErr       WCStatus = 11
	WCRetryExcErr    WCStatus = 12
	WCRNRRetryExcErr WCStatus = 13
	WCLocRDDViolErr  WCStatus = 14
	WCRemInvRDReqErr WCStatus = 15
	WCRemAbortErr    WCStatus = 16
	WCInvEECNErr     WCStatus = 17
	WCInvEECStateErr WCStatus = 18
	WCFatalErr       WCStatus = 19
	WCRespTimeoutErr WCStatus = 20
	WCGeneralErr     WCStatus = 21
)

// WCOpcode says what kind of request ended (ibv_wc_opcode).
type WCOpcode uint8

// The kinds. Those of receive requests have the bit WCRecv set.
const (
	WCSend            WCOpcode = 0
	WCRDMAWrite       WCOpcode = 1
	WCRDMARead        WCOpcode = 2
	WCCompSwap        WCOpcode = 3
	WCFetchAdd        WCOpcode = 4
	WCBindMW          WCOpcode = 5
	WCLocalInv        WCOpcode = 6
	WCRecv            WCOpcode = 1 << 7
	WCRecvRDMAWithImm WCOpcode = 1<<7 + 1
)

// IsRecv reports whether the completed request was a receive, for any operation of the peer.
func (o WCOpcode) IsRecv() bool { return o&WCRecv != 0 }

// WCFlags say what a completion carries: ibv_wc_flags, and from bit 4 on the kernel's
// ib_wc_flags.
type WCFlags uint16

// The flags.
const (
	WCGRH                WCFlags = 1 << 0 // the first 40 bytes of the buffer are the GRH
	WCWithImm            WCFlags = 1 << 1 // ImmData is valid
	WCWithInv            WCFlags = 1 << 3
	WCWithSMAC           WCFlags = 1 << 4 // SMAC is valid
	WCWithVLAN           WCFlags = 1 << 5 // the frame was tagged: VLAN is valid
	WCWithNetworkHdrType WCFlags = 1 << 6 // NetworkHeader is valid
)

// CQNotifyFlags say of which completion a program wants a notification (ib_cq_notify_flags).
type CQNotifyFlags uint8

// The notifications: exactly one of the first two, and the third besides.
const (
	CQSolicited          CQNotifyFlags = 1 << 0 // the next solicited or failed completion
	CQNextComp           CQNotifyFlags = 1 << 1 // the next completion
	CQReportMissedEvents CQNotifyFlags = 1 << 2 // say whether completions are there already
)

// CQFlags say how a CQ is made (ibv_create_cq_attr_flags).
type CQFlags uint32

// The flags of a CQ.
const (
	CQSingleThreaded CQFlags = 1 << 0 // accepted, without effect
	CQIgnoreOverrun  CQFlags = 1 << 1 // not supported: an overrun is never ignored
)

// CQWCFlags say what the completions of a CQ are to carry (ibv_create_cq_wc_flags).
type CQWCFlags uint64

// What completions carry. All but the last four are always there.
const (
	WCExWithByteLen                      CQWCFlags = 1 << 0
	WCExWithImm                          CQWCFlags = 1 << 1
	WCExWithQPNum                        CQWCFlags = 1 << 2
	WCExWithSrcQP                        CQWCFlags = 1 << 3
	WCExWithSLID                         CQWCFlags = 1 << 4 // 0 on Ethernet
	WCExWithSL                           CQWCFlags = 1 << 5
	WCExWithDLIDPathBits                 CQWCFlags = 1 << 6 // 0 on Ethernet
	WCExWithCVLAN                        CQWCFlags = 1 << 8
	WCExWithCompletionTimestamp          CQWCFlags = 1 << 7
	WCExWithFlowTag                      CQWCFlags = 1 << 9  // not supported
	WCExWithTMInfo                       CQWCFlags = 1 << 10 // not supported
	WCExWithCompletionTimestampWallclock CQWCFlags = 1 << 11
)

// NetworkType is the network header of a received packet (the kernel's rdma_network_type).
type NetworkType uint8

// The network headers of RoCEv2.
const (
	NetworkIPv4 NetworkType = 2
	NetworkIPv6 NetworkType = 3
)

// QPType is a transport service (ibv_qp_type; special ones and XRC as in the kernel's ib_qp_type).
type QPType uint8

// The services. RC, UC, UD and GSI are implemented.
const (
	QPTypeSMI       QPType = 0 // QP 0, for subnet management, which RoCE does not have
	QPTypeGSI       QPType = 1 // QP 1, for general services such as connection management
	QPTypeRC        QPType = 2
	QPTypeUC        QPType = 3
	QPTypeUD        QPType = 4
	QPTypeRawPacket QPType = 8
	QPTypeXRCSend   QPType = 9  // IB_QPT_XRC_INI
	QPTypeXRCRecv   QPType = 10 // IB_QPT_XRC_TGT
)

// LinkLayer is the kind of network that a port is on (rdma_link_layer; IBV_LINK_LAYER_*).
type LinkLayer uint8

// The link layers. A port of roced has Ethernet.
const (
	LinkLayerUnspecified LinkLayer = 0
	LinkLayerInfiniBand  LinkLayer = 1
	LinkLayerEthernet    LinkLayer = 2
)

// QPState is a queue pair's state (ibv_qp_state; IBA 10.3.1).
type QPState uint8

// The states.
const (
	QPStateReset QPState = 0
	QPStateInit  QPState = 1
	QPStateRTR   QPState = 2 // ready to receive
	QPStateRTS   QPState = 3 // ready to send
	QPStateSQD   QPState = 4 // send queue drained
	QPStateSQE   QPState = 5 // send queue error
	QPStateErr   QPState = 6
)

// Receives reports whether a queue pair in this state receives packets.
func (s QPState) Receives() bool { return s >= QPStateRTR && s <= QPStateSQE }

// QPAttrMask says which attributes of a queue pair are set (ibv_qp_attr_mask).
type QPAttrMask uint32

// The attributes.
const (
	QPAttrState            QPAttrMask = 1 << 0
	QPAttrCurState         QPAttrMask = 1 << 1
	QPAttrEnSQDAsyncNotify QPAttrMask = 1 << 2
	QPAttrAccessFlags      QPAttrMask = 1 << 3
	QPAttrPKeyIndex        QPAttrMask = 1 << 4
	QPAttrPort             QPAttrMask = 1 << 5
	QPAttrQKey             QPAttrMask = 1 << 6
	QPAttrAV               QPAttrMask = 1 << 7
	QPAttrPathMTU          QPAttrMask = 1 << 8
	QPAttrTimeout          QPAttrMask = 1 << 9
	QPAttrRetryCnt         QPAttrMask = 1 << 10
	QPAttrRNRRetry         QPAttrMask = 1 << 11
	QPAttrRQPSN            QPAttrMask = 1 << 12
	QPAttrMaxQPRDAtomic    QPAttrMask = 1 << 13
	QPAttrAltPath          QPAttrMask = 1 << 14
	QPAttrMinRNRTimer      QPAttrMask = 1 << 15
	QPAttrSQPSN            QPAttrMask = 1 << 16
	QPAttrMaxDestRDAtomic  QPAttrMask = 1 << 17
	QPAttrPathMigState     QPAttrMask = 1 << 18
	QPAttrCap              QPAttrMask = 1 << 19
	QPAttrDestQPN          QPAttrMask = 1 << 20
	QPAttrRateLimit        QPAttrMask = 1 << 25
)

// PathMigState is the state of a queue pair's path migration (ibv_mig_state).
type PathMigState uint8

// The states.
const (
	MigMigrated PathMigState = 0
	MigRearm    PathMigState = 1
	MigArmed    PathMigState = 2
)

// SRQAttrMask says which attributes of a shared receive queue are set (ibv_srq_attr_mask).
type SRQAttrMask uint32

// The attributes.
const (
	SRQMaxWR SRQAttrMask = 1 << 0
	SRQLimit SRQAttrMask = 1 << 1
)

// AccessFlags say what may be done with a memory region (ibv_access_flags).
// Reading it locally is always allowed.
type AccessFlags uint32

// The access flags.
const (
	AccessLocalWrite      AccessFlags = 1 << 0 // receives may write to the region
	AccessRemoteWrite     AccessFlags = 1 << 1
	AccessRemoteRead      AccessFlags = 1 << 2
	AccessRemoteAtomic    AccessFlags = 1 << 3
	AccessMWBind          AccessFlags = 1 << 4
	AccessZeroBased       AccessFlags = 1 << 5 // addresses in the region begin at 0
	AccessOnDemand        AccessFlags = 1 << 6
	AccessHugeTLB         AccessFlags = 1 << 7
	AccessFlushGlobal     AccessFlags = 1 << 8
	AccessFlushPersistent AccessFlags = 1 << 9

	// AccessOptionalRange are the flags that a device ignores if it does not know them.
	AccessOptionalRange   AccessFlags = 0x3FF << 20
	AccessRelaxedOrdering AccessFlags = 1 << 20
)

// MWType is the kind of a memory window (ibv_mw_type).
type MWType uint8

// The kinds.
const (
	MWType1 MWType = 1 // bound by any queue pair of its PD, for all of them
	MWType2 MWType = 2 // bound by a queue pair for itself, until its key is invalidated
)

// ReregFlags say what changes when a memory region is registered again (ibv_rereg_mr_flags).
type ReregFlags uint32

// What can change, in any combination.
const (
	ReregChangeTranslation ReregFlags = 1 << 0 // the memory, and its base address
	ReregChangePD          ReregFlags = 1 << 1
	ReregChangeAccess      ReregFlags = 1 << 2
)

// EventType is the kind of an asynchronous event (ibv_event_type). As there, the zero EventType is
// EventCQErr, also in the event that comes with an error and is none.
type EventType uint8

// The events.
const (
	EventCQErr            EventType = 0 // a CQ was overrun; its queue pairs go to ERR
	EventQPFatal          EventType = 1 // a queue pair went to ERR, and no completion reports why
	EventQPReqErr         EventType = 2
	EventQPAccessErr      EventType = 3
	EventCommEst          EventType = 4
	EventSQDrained        EventType = 5
	EventPathMig          EventType = 6
	EventPathMigErr       EventType = 7
	EventDeviceFatal      EventType = 8  // the device has failed: close the context
	EventPortActive       EventType = 9  // the port's link came up
	EventPortErr          EventType = 10 // the port's link went down
	EventSRQErr           EventType = 14
	EventSRQLimitReached  EventType = 15
	EventQPLastWQEReached EventType = 16
	EventGIDChange        EventType = 18 // entries of the port's GID table changed

	// EventMTUChange means that the port's active MTU changed with the interface's MTU: sends that
	// are longer fail from now on. libibverbs has no such event; numbers from 128 on are ours.
	EventMTUChange EventType = 128
)

// PortState is the state of a port's link (ibv_port_state).
type PortState uint8

// The states of an Ethernet port.
const (
	PortDown   PortState = 1
	PortActive PortState = 4
)

// PortPhysState is the state of a port's physical link (ib_port_phys_state).
type PortPhysState uint8

// The physical states of an Ethernet port.
const (
	PhysStatePolling  PortPhysState = 2 // no carrier
	PhysStateDisabled PortPhysState = 3 // switched off by the administrator
	PhysStateLinkUp   PortPhysState = 5
)

// PortCapFlags say what a port can do (ibv_port_cap_flags).
type PortCapFlags uint32

// The abilities of a RoCE v2 port.
const (
	PortCapIPBasedGIDs PortCapFlags = 1 << 26 // GIDs are IP addresses
)

// DeviceCapFlags say what a device can do (ibv_device_cap_flags).
type DeviceCapFlags uint32

// The abilities.
const (
	DeviceBadPKeyCntr     DeviceCapFlags = 1 << 1
	DeviceBadQKeyCntr     DeviceCapFlags = 1 << 2
	DeviceCurrQPStateMod  DeviceCapFlags = 1 << 7 // QPAttrCurState
	DevicePortActiveEvent DeviceCapFlags = 1 << 10
	DeviceSysImageGUID    DeviceCapFlags = 1 << 11
	DeviceRCRNRNAKGen     DeviceCapFlags = 1 << 12 // a peer that has no receive says so
	DeviceSRQResize       DeviceCapFlags = 1 << 13
	DeviceNNotifyCQ       DeviceCapFlags = 1 << 14 // an event after n completions
	DeviceMemWindow       DeviceCapFlags = 1 << 17
	DeviceMemWindowType2B DeviceCapFlags = 1 << 24 // of type 2, bound to queue pair and PD
)

// AtomicCap says what a device's atomic operations are atomic to (ibv_atomic_cap).
type AtomicCap uint8

// The kinds of atomicity.
const (
	AtomicNone AtomicCap = 0 // there are no atomic operations
	AtomicHCA  AtomicCap = 1 // to others of the same device
	AtomicGlob AtomicCap = 2 // to everything
)

// GIDType is the protocol that a GID is used with (ibv_gid_type).
type GIDType uint8

// The types of GIDs.
const (
	GIDTypeIB     GIDType = 0
	GIDTypeRoCEv1 GIDType = 1
	GIDTypeRoCEv2 GIDType = 2
)

// Rate is the rate of a link (ib_rate, ibv_rate). The numbers do not follow the rates' order.
type Rate uint8

// The rates, by Gbit/s.
const (
	RatePortCurrent Rate = 0 // the port's own; in libibverbs IBV_RATE_MAX
	Rate2p5Gbps     Rate = 2
	Rate5Gbps       Rate = 5
	Rate10Gbps      Rate = 3
	Rate20Gbps      Rate = 6
	Rate30Gbps      Rate = 4
	Rate40Gbps      Rate = 7
	Rate60Gbps      Rate = 8
	Rate80Gbps      Rate = 9
	Rate120Gbps     Rate = 10
	Rate14Gbps      Rate = 11
	Rate56Gbps      Rate = 12
	Rate112Gbps     Rate = 13
	Rate168Gbps     Rate = 14
	Rate25Gbps      Rate = 15
	Rate100Gbps     Rate = 16
	Rate200Gbps     Rate = 17
	Rate300Gbps     Rate = 18
	Rate28Gbps      Rate = 19
	Rate50Gbps      Rate = 20
	Rate400Gbps     Rate = 21
	Rate600Gbps     Rate = 22
	Rate800Gbps     Rate = 23
	Rate1200Gbps    Rate = 24
	Rate1600Gbps    Rate = 25
)

// JoinFlags is the kind of a group membership (join_flags of rdma_cm_join_mc_attr_ex). A join has
// exactly one.
type JoinFlags uint32

// The kinds of membership on Ethernet (rdma_join_multicast_ex(3)).
const (
	JoinFullMember         JoinFlags = 1 << 0 // sends and receives
	JoinSendOnlyFullMember JoinFlags = 1 << 1 // sends, and is never reported by IGMP or MLD
)

// The limits of queues and their entries.
const (
	// MaxEntries is the most slots a queue may have.
	MaxEntries = 1 << 20
	// MaxSGE is the most scatter/gather entries a work request may have.
	MaxSGE = 16
	// MaxInline is the most bytes a send may carry in its slot.
	MaxInline = 1024
	// MaxQueuePairs is how many queue pairs one doorbell serves.
	MaxQueuePairs = 1 << 16
)
