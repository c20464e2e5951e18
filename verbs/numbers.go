package verbs

import "github.com/roced/roced/datapath/ring"

// The numbers of libibverbs, by its names. They are defined and documented in datapath/ring
// (go doc github.com/roced/roced/datapath/ring.EventType, and so for each).
type (
	// Opcode is ibv_wr_opcode: the operation of a send work request. Values: WRSend to WRSendWithInv, which go doc
	// verbs.WRSend lists.
	Opcode = ring.Opcode

	// SendFlags is ibv_send_flags. Bits: SendFence, SendSignaled, SendSolicited and SendInline.
	SendFlags = ring.SendFlags

	// WCStatus is ibv_wc_status: how a work request ended. Values: WCSuccess to WCGeneralErr, which go doc
	// verbs.WCSuccess lists.
	WCStatus = ring.WCStatus

	// WCOpcode is ibv_wc_opcode: what kind of request ended. Values: WCSend to WCRecvRDMAWithImm, which go doc
	// verbs.WCSend lists.
	WCOpcode = ring.WCOpcode

	// WCFlags is ibv_wc_flags: what a completion carries. Bits: WCGRH, WCWithImm, WCWithInv, WCWithSMAC,
	// WCWithVLAN and WCWithNetworkHdrType.
	WCFlags = ring.WCFlags

	// NetworkType is rdma_network_type: the header of a received packet. Values: NetworkIPv4 or NetworkIPv6.
	NetworkType = ring.NetworkType

	// QPType is ibv_qp_type: the transport service. Values: QPTypeSMI, QPTypeGSI, QPTypeRC, QPTypeUC,
	// QPTypeUD, QPTypeRawPacket, QPTypeXRCSend or QPTypeXRCRecv.
	QPType = ring.QPType

	// QPState is ibv_qp_state. Values: QPStateReset, QPStateInit, QPStateRTR, QPStateRTS, QPStateSQD,
	// QPStateSQE or QPStateErr.
	QPState = ring.QPState

	// QPAttrMask is ibv_qp_attr_mask: which attributes count. Bits: QPAttrState to QPAttrRateLimit, which go doc
	// verbs.QPAttrState lists.
	QPAttrMask = ring.QPAttrMask

	// SRQAttrMask is ibv_srq_attr_mask: which attributes of an SRQ count. Bits: SRQMaxWR and SRQLimit.
	SRQAttrMask = ring.SRQAttrMask

	// LinkLayer is rdma_link_layer: the kind of network that a port is on. Values: LinkLayerUnspecified,
	// LinkLayerInfiniBand or LinkLayerEthernet.
	LinkLayer = ring.LinkLayer

	// AccessFlags is ibv_access_flags: what may be done with a memory region. Bits: AccessLocalWrite to
	// AccessOptionalRange, which go doc verbs.AccessLocalWrite lists.
	AccessFlags = ring.AccessFlags

	// MWType is ibv_mw_type. Values: MWType1 or MWType2.
	MWType = ring.MWType

	// ReregFlags is ibv_rereg_mr_flags: what changes of a memory region. Bits: ReregChangeTranslation,
	// ReregChangePD and ReregChangeAccess.
	ReregFlags = ring.ReregFlags

	// EventType is ibv_event_type. Values: EventCQErr to EventMTUChange, which go doc verbs.EventCQErr lists.
	EventType = ring.EventType

	// PortState is ibv_port_state. Values: PortDown or PortActive.
	PortState = ring.PortState

	// PortPhysState is ib_port_phys_state. Values: PhysStatePolling, PhysStateDisabled or PhysStateLinkUp.
	PortPhysState = ring.PortPhysState

	// PortCapFlags is ibv_port_cap_flags. Bits: PortCapIPBasedGIDs is one.
	PortCapFlags = ring.PortCapFlags

	// DeviceCapFlags is ibv_device_cap_flags. Bits: DeviceBadPKeyCntr to DeviceMemWindowType2B, which go doc
	// verbs.DeviceBadPKeyCntr lists.
	DeviceCapFlags = ring.DeviceCapFlags

	// AtomicCap is ibv_atomic_cap. Values: AtomicNone, AtomicHCA or AtomicGlob.
	AtomicCap = ring.AtomicCap

	// PathMigState is ibv_mig_state. Values: MigMigrated, MigRearm or MigArmed.
	PathMigState = ring.PathMigState

	// GIDType is ibv_gid_type. Values: GIDTypeIB, GIDTypeRoCEv1 or GIDTypeRoCEv2.
	GIDType = ring.GIDType

	// JoinFlags is what a member of a group does; a join has one. Bits: JoinFullMember and
	// JoinSendOnlyFullMember.
	JoinFlags = ring.JoinFlags

	// CQNotifyFlags is ib_cq_notify_flags: of which completion a CQ notifies. Bits: CQSolicited, CQNextComp
	// and CQReportMissedEvents.
	CQNotifyFlags = ring.CQNotifyFlags

	// CQFlags is ibv_create_cq_attr_flags. Bits: CQSingleThreaded and CQIgnoreOverrun.
	CQFlags = ring.CQFlags

	// CQWCFlags is ibv_create_cq_wc_flags: what completions are to carry. Bits: WCExWithByteLen to
	// WCExWithTMInfo, which go doc verbs.WCExWithByteLen lists.
	CQWCFlags = ring.CQWCFlags
)

// The operations of send work requests. Datagrams have the first two, UC no reads, atomics and
// invalidation; the zero Opcode is WRRDMAWrite, as in libibverbs.
const (
	WRSend              = ring.WRSend
	WRSendWithImm       = ring.WRSendWithImm
	WRRDMAWrite         = ring.WRRDMAWrite
	WRRDMAWriteWithImm  = ring.WRRDMAWriteWithImm
	WRRDMARead          = ring.WRRDMARead
	WRAtomicCmpAndSwp   = ring.WRAtomicCmpAndSwp
	WRAtomicFetchAndAdd = ring.WRAtomicFetchAndAdd
	WRLocalInv          = ring.WRLocalInv
	WRBindMW            = ring.WRBindMW
	WRSendWithInv       = ring.WRSendWithInv
)

// The send flags.
const (
	SendFence     = ring.SendFence // RC: after all reads and atomics before it; others have nothing to wait for
	SendSignaled  = ring.SendSignaled
	SendSolicited = ring.SendSolicited
	SendInline    = ring.SendInline // data is copied when posted: memory can be reused at once
)

// The statuses of completions; WC.Err says what each means. Datagrams have WCSuccess, WCLocLenErr,
// WCLocQPOpErr, WCLocProtErr and WCWRFlushErr.
//
// WCSuccess of an RC queue pair's request means that the peer has answered it. That of a UC or UD send means that the card is done with the request and its memory, not that the
// message arrived. A message to a neighbour that does not answer, or sent while the link is down,
// completes with success as well. The card drops and counts it (counters unreachable and
// link_down).
const (
	WCSuccess        = ring.WCSuccess
	WCLocLenErr      = ring.WCLocLenErr
	WCLocQPOpErr     = ring.WCLocQPOpErr
	WCLocEECOpErr    = ring.WCLocEECOpErr
	WCLocProtErr     = ring.WCLocProtErr
	WCWRFlushErr     = ring.WCWRFlushErr
	WCMWBindErr      = ring.WCMWBindErr
	WCBadRespErr     = ring.WCBadRespErr
	WCLocAccessErr   = ring.WCLocAccessErr
	WCRemInvReqErr   = ring.WCRemInvReqErr
	WCRemAccessErr   = ring.WCRemAccessErr
	WCRemOpErr       = ring.WCRemOpErr
	WCRetryExcErr    = ring.WCRetryExcErr
	WCRNRRetryExcErr = ring.WCRNRRetryExcErr
	WCLocRDDViolErr  = ring.WCLocRDDViolErr
	WCRemInvRDReqErr = ring.WCRemInvRDReqErr
	WCRemAbortErr    = ring.WCRemAbortErr
	WCInvEECNErr     = ring.WCInvEECNErr
	WCInvEECStateErr = ring.WCInvEECStateErr
	WCFatalErr       = ring.WCFatalErr
	WCRespTimeoutErr = ring.WCRespTimeoutErr
	WCGeneralErr     = ring.WCGeneralErr
)

// The kinds of requests that complete. All that end a receive request have the bit of WCRecv; see
// WCOpcode.IsRecv.
const (
	WCSend            = ring.WCSend
	WCRDMAWrite       = ring.WCRDMAWrite
	WCRDMARead        = ring.WCRDMARead
	WCCompSwap        = ring.WCCompSwap
	WCFetchAdd        = ring.WCFetchAdd
	WCBindMW          = ring.WCBindMW
	WCLocalInv        = ring.WCLocalInv
	WCRecv            = ring.WCRecv
	WCRecvRDMAWithImm = ring.WCRecvRDMAWithImm
)

// What a completion carries.
const (
	WCGRH                = ring.WCGRH     // the first 40 bytes of the buffer are the GRH
	WCWithImm            = ring.WCWithImm // ImmData is valid
	WCWithInv            = ring.WCWithInv
	WCWithSMAC           = ring.WCWithSMAC           // SMAC is valid
	WCWithVLAN           = ring.WCWithVLAN           // the frame was tagged: VLAN is valid
	WCWithNetworkHdrType = ring.WCWithNetworkHdrType // NetworkHeader is valid
)

// Of which completion a CQ notifies: exactly one of the first two, and the third besides.
const (
	CQSolicited          = ring.CQSolicited          // the next solicited or failed one
	CQNextComp           = ring.CQNextComp           // the next one
	CQReportMissedEvents = ring.CQReportMissedEvents // say whether some are there already
)

// How a CQ is made.
const (
	CQSingleThreaded = ring.CQSingleThreaded // accepted, without effect
	CQIgnoreOverrun  = ring.CQIgnoreOverrun  // ErrUnsupported: an overrun is never ignored
)

// What completions are to carry. All but the last four is always there.
const (
	WCExWithByteLen                      = ring.WCExWithByteLen
	WCExWithImm                          = ring.WCExWithImm
	WCExWithQPNum                        = ring.WCExWithQPNum
	WCExWithSrcQP                        = ring.WCExWithSrcQP
	WCExWithSLID                         = ring.WCExWithSLID // 0 on Ethernet
	WCExWithSL                           = ring.WCExWithSL
	WCExWithDLIDPathBits                 = ring.WCExWithDLIDPathBits // 0 on Ethernet
	WCExWithCVLAN                        = ring.WCExWithCVLAN
	WCExWithCompletionTimestamp          = ring.WCExWithCompletionTimestamp          // WC.Timestamp
	WCExWithCompletionTimestampWallclock = ring.WCExWithCompletionTimestampWallclock // WC.Wallclock
	WCExWithFlowTag                      = ring.WCExWithFlowTag                      // ErrUnsupported
	WCExWithTMInfo                       = ring.WCExWithTMInfo                       // ErrUnsupported
)

// The network headers of RoCEv2.
const (
	NetworkIPv4 = ring.NetworkIPv4
	NetworkIPv6 = ring.NetworkIPv6
)

// The transport services. RC, UC, UD and GSI are supported; the others are ErrUnsupported.
const (
	QPTypeSMI       = ring.QPTypeSMI // QP 0: RoCE has no subnet management
	QPTypeGSI       = ring.QPTypeGSI // QP 1, for privileged programs; see QPInitAttr
	QPTypeRC        = ring.QPTypeRC  // reliable connections
	QPTypeUC        = ring.QPTypeUC  // unreliable connections: what is lost is not repeated
	QPTypeUD        = ring.QPTypeUD  // unreliable datagrams
	QPTypeRawPacket = ring.QPTypeRawPacket
	QPTypeXRCSend   = ring.QPTypeXRCSend
	QPTypeXRCRecv   = ring.QPTypeXRCRecv
)

// The link layers. A port of roced has Ethernet.
const (
	LinkLayerUnspecified = ring.LinkLayerUnspecified
	LinkLayerInfiniBand  = ring.LinkLayerInfiniBand
	LinkLayerEthernet    = ring.LinkLayerEthernet
)

// The states of a queue pair (IBA 10.3.1).
const (
	QPStateReset = ring.QPStateReset
	QPStateInit  = ring.QPStateInit
	QPStateRTR   = ring.QPStateRTR // ready to receive
	QPStateRTS   = ring.QPStateRTS // ready to send
	QPStateSQD   = ring.QPStateSQD // send queue drained
	QPStateSQE   = ring.QPStateSQE // send queue error
	QPStateErr   = ring.QPStateErr
)

// The attributes of queue pairs. ModifyQPIsOK says which count in which change of state, for each type.
const (
	QPAttrState            = ring.QPAttrState
	QPAttrCurState         = ring.QPAttrCurState
	QPAttrEnSQDAsyncNotify = ring.QPAttrEnSQDAsyncNotify
	QPAttrAccessFlags      = ring.QPAttrAccessFlags
	QPAttrPKeyIndex        = ring.QPAttrPKeyIndex
	QPAttrPort             = ring.QPAttrPort
	QPAttrQKey             = ring.QPAttrQKey
	QPAttrAV               = ring.QPAttrAV
	QPAttrPathMTU          = ring.QPAttrPathMTU
	QPAttrTimeout          = ring.QPAttrTimeout
	QPAttrRetryCnt         = ring.QPAttrRetryCnt
	QPAttrRNRRetry         = ring.QPAttrRNRRetry
	QPAttrRQPSN            = ring.QPAttrRQPSN
	QPAttrMaxQPRDAtomic    = ring.QPAttrMaxQPRDAtomic
	QPAttrAltPath          = ring.QPAttrAltPath
	QPAttrMinRNRTimer      = ring.QPAttrMinRNRTimer
	QPAttrSQPSN            = ring.QPAttrSQPSN
	QPAttrMaxDestRDAtomic  = ring.QPAttrMaxDestRDAtomic
	QPAttrPathMigState     = ring.QPAttrPathMigState
	QPAttrCap              = ring.QPAttrCap
	QPAttrDestQPN          = ring.QPAttrDestQPN
	QPAttrRateLimit        = ring.QPAttrRateLimit
)

// The attributes of shared receive queues that Modify changes.
const (
	SRQMaxWR = ring.SRQMaxWR
	SRQLimit = ring.SRQLimit
)

// The access rights of a memory region. The card may always read it. A peer may do what region (or
// window) and queue pair both allow. Flush and on-demand paging are ErrUnsupported.
const (
	AccessLocalWrite      = ring.AccessLocalWrite  // receives, and answers to reads and atomics, may be written to it
	AccessRemoteWrite     = ring.AccessRemoteWrite // needs AccessLocalWrite too, as do atomics
	AccessRemoteRead      = ring.AccessRemoteRead
	AccessRemoteAtomic    = ring.AccessRemoteAtomic
	AccessMWBind          = ring.AccessMWBind    // memory windows may be bound to it
	AccessZeroBased       = ring.AccessZeroBased // addresses begin at 0, as they do in any case without an iova
	AccessOnDemand        = ring.AccessOnDemand
	AccessHugeTLB         = ring.AccessHugeTLB
	AccessFlushGlobal     = ring.AccessFlushGlobal
	AccessFlushPersistent = ring.AccessFlushPersistent
	AccessRelaxedOrdering = ring.AccessRelaxedOrdering // no effect
	AccessOptionalRange   = ring.AccessOptionalRange   // all flags that may have no effect
)

// The kinds of memory windows; see MW.
const (
	MWType1 = ring.MWType1
	MWType2 = ring.MWType2
)

// What MR.Rereg changes, in any combination.
const (
	ReregChangeTranslation = ring.ReregChangeTranslation // the memory, and its base address
	ReregChangePD          = ring.ReregChangePD
	ReregChangeAccess      = ring.ReregChangeAccess
)

// The asynchronous events (ibv_get_async_event(3)). Those that have no comment belong to alternate
// paths, or to hardware that fails, and do not occur.
const (
	EventCQErr            = ring.EventCQErr       // a CQ was overrun; its queue pairs go to ERR
	EventQPFatal          = ring.EventQPFatal     // a queue pair went to ERR, and no completion says why
	EventQPReqErr         = ring.EventQPReqErr    // the peer's request was invalid; the queue pair went to ERR
	EventQPAccessErr      = ring.EventQPAccessErr // the peer's request touched memory that it may not; likewise
	EventCommEst          = ring.EventCommEst     // the first packet of the peer came, in RTR
	EventSQDrained        = ring.EventSQDrained   // see QPAttr.EnSQDAsyncNotify
	EventPathMig          = ring.EventPathMig
	EventPathMigErr       = ring.EventPathMigErr
	EventDeviceFatal      = ring.EventDeviceFatal // the device has failed: close the context
	EventPortActive       = ring.EventPortActive  // the port's link came up
	EventPortErr          = ring.EventPortErr     // the port's link went down
	EventSRQErr           = ring.EventSRQErr
	EventSRQLimitReached  = ring.EventSRQLimitReached  // see SRQ.Modify
	EventQPLastWQEReached = ring.EventQPLastWQEReached // a queue pair with an SRQ went to ERR: it takes no more receives
	EventGIDChange        = ring.EventGIDChange        // entries of the port's GID table changed
	EventMTUChange        = ring.EventMTUChange        // the active MTU changed with the interface's, or cannot follow it; not in libibverbs
)

// The port states that an Ethernet port has.
const (
	PortDown   = ring.PortDown
	PortActive = ring.PortActive
)

// The physical states that an Ethernet port has.
const (
	PhysStatePolling  = ring.PhysStatePolling  // no carrier
	PhysStateDisabled = ring.PhysStateDisabled // switched off by the administrator
	PhysStateLinkUp   = ring.PhysStateLinkUp
)

// PortCapIPBasedGIDs says that a port's GIDs are IP addresses, as those of RoCE v2 are.
const PortCapIPBasedGIDs = ring.PortCapIPBasedGIDs

// What a device can do.
const (
	DeviceBadPKeyCntr     = ring.DeviceBadPKeyCntr
	DeviceBadQKeyCntr     = ring.DeviceBadQKeyCntr
	DeviceCurrQPStateMod  = ring.DeviceCurrQPStateMod // QPAttrCurState
	DevicePortActiveEvent = ring.DevicePortActiveEvent
	DeviceSysImageGUID    = ring.DeviceSysImageGUID
	DeviceRCRNRNAKGen     = ring.DeviceRCRNRNAKGen // a peer that has no receive says so
	DeviceSRQResize       = ring.DeviceSRQResize
	DeviceNNotifyCQ       = ring.DeviceNNotifyCQ // an event after n completions
	DeviceMemWindow       = ring.DeviceMemWindow
	DeviceMemWindowType2B = ring.DeviceMemWindowType2B // of type 2, bound to queue pair and PD
)

// What atomic operations are atomic to.
const (
	AtomicNone = ring.AtomicNone // there are none
	AtomicHCA  = ring.AtomicHCA  // to others of the same device
	AtomicGlob = ring.AtomicGlob
)

// The types of GIDs. All that a port has are of RoCE v2.
const (
	GIDTypeIB     = ring.GIDTypeIB
	GIDTypeRoCEv1 = ring.GIDTypeRoCEv1
	GIDTypeRoCEv2 = ring.GIDTypeRoCEv2
)

// The kinds of membership that Ethernet has (rdma_join_multicast_ex(3)).
const (
	JoinFullMember         = ring.JoinFullMember         // sends and receives
	JoinSendOnlyFullMember = ring.JoinSendOnlyFullMember // sends, and is never reported by IGMP or MLD
)

// The states of path migration. There is no alternate path on RoCE.
const (
	MigMigrated = ring.MigMigrated
	MigRearm    = ring.MigRearm
	MigArmed    = ring.MigArmed
)
