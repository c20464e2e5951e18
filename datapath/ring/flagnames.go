package ring

import "fmt"

// flag is a bit of a mask, with its name.
type flag[M ~uint8 | ~uint16 | ~uint32 | ~uint64] struct {
	bit  M
	name string
}

// listed names the bits of a mask, in the order of the names. Bits without a name follow as a number.
func listed[M ~uint8 | ~uint16 | ~uint32 | ~uint64](names []flag[M], mask M) string {
	text := ""
	for _, one := range names {
		if mask&one.bit != 0 {
			text += ", " + one.name
			mask &^= one.bit
		}
	}
	if mask != 0 {
		text += fmt.Sprintf(", 0x%x", uint64(mask))
	}
	if text == "" {
		return "nothing"
	}
	return text[2:]
}

var attrNames = []flag[QPAttrMask]{
	{QPAttrState, "state"}, {QPAttrCurState, "current state"}, {QPAttrEnSQDAsyncNotify, "SQD event"}, {QPAttrAccessFlags, "access flags"},
	{QPAttrPKeyIndex, "P_Key index"}, {QPAttrPort, "port"}, {QPAttrQKey, "Q_Key"}, {QPAttrAV, "address vector"}, {QPAttrPathMTU, "path MTU"},
	{QPAttrTimeout, "timeout"}, {QPAttrRetryCnt, "retry count"}, {QPAttrRNRRetry, "RNR retry count"}, {QPAttrRQPSN, "RQ PSN"},
	{QPAttrMaxQPRDAtomic, "max_rd_atomic"}, {QPAttrAltPath, "alternate path"}, {QPAttrMinRNRTimer, "RNR timer"}, {QPAttrSQPSN, "SQ PSN"},
	{QPAttrMaxDestRDAtomic, "max_dest_rd_atomic"}, {QPAttrPathMigState, "path migration state"}, {QPAttrCap, "capabilities"},
	{QPAttrDestQPN, "destination QPN"}, {QPAttrRateLimit, "rate limit"},
}

// String lists the attributes in the mask.
func (m QPAttrMask) String() string { return listed(attrNames, m) }

var sendFlagNames = []flag[SendFlags]{
	{SendFence, "FENCE"}, {SendSignaled, "SIGNALED"}, {SendSolicited, "SOLICITED"}, {SendInline, "INLINE"},
}

// String lists the flags as libibverbs names them.
func (f SendFlags) String() string { return listed(sendFlagNames, f) }

var wcFlagNames = []flag[WCFlags]{
	{WCGRH, "GRH"}, {WCWithImm, "WITH_IMM"}, {WCWithInv, "WITH_INV"},
	{WCWithSMAC, "WITH_SMAC"}, {WCWithVLAN, "WITH_VLAN"}, {WCWithNetworkHdrType, "WITH_NETWORK_HDR_TYPE"},
}

// String lists the flags as libibverbs names them, and the kernel.
func (f WCFlags) String() string { return listed(wcFlagNames, f) }

var accessNames = []flag[AccessFlags]{
	{AccessLocalWrite, "LOCAL_WRITE"}, {AccessRemoteWrite, "REMOTE_WRITE"}, {AccessRemoteRead, "REMOTE_READ"},
	{AccessRemoteAtomic, "REMOTE_ATOMIC"}, {AccessMWBind, "MW_BIND"}, {AccessZeroBased, "ZERO_BASED"}, {AccessOnDemand, "ON_DEMAND"},
	{AccessHugeTLB, "HUGETLB"}, {AccessFlushGlobal, "FLUSH_GLOBAL"}, {AccessFlushPersistent, "FLUSH_PERSISTENT"},
	{AccessRelaxedOrdering, "RELAXED_ORDERING"},
}

// String lists the flags as libibverbs names them.
func (f AccessFlags) String() string { return listed(accessNames, f) }

var deviceCapNames = []flag[DeviceCapFlags]{
	{DeviceBadPKeyCntr, "BAD_PKEY_CNTR"}, {DeviceBadQKeyCntr, "BAD_QKEY_CNTR"}, {DeviceCurrQPStateMod, "CURR_QP_STATE_MOD"},
	{DevicePortActiveEvent, "PORT_ACTIVE_EVENT"}, {DeviceSysImageGUID, "SYS_IMAGE_GUID"}, {DeviceSRQResize, "SRQ_RESIZE"},
	{DeviceNNotifyCQ, "N_NOTIFY_CQ"}, {DeviceRCRNRNAKGen, "RC_RNR_NAK_GEN"}, {DeviceMemWindow, "MEM_WINDOW"}, {DeviceMemWindowType2B, "MEM_WINDOW_TYPE_2B"},
}

// String lists the abilities as ibv_devinfo does.
func (f DeviceCapFlags) String() string { return listed(deviceCapNames, f) }

// String names the one that a RoCE v2 port has.
func (f PortCapFlags) String() string {
	return listed([]flag[PortCapFlags]{{PortCapIPBasedGIDs, "IP_BASED_GIDS"}}, f)
}

var notifyNames = []flag[CQNotifyFlags]{
	{CQSolicited, "SOLICITED"}, {CQNextComp, "NEXT_COMP"}, {CQReportMissedEvents, "REPORT_MISSED_EVENTS"},
}

// String lists the notifications as the kernel names them.
func (f CQNotifyFlags) String() string { return listed(notifyNames, f) }

var cqFlagNames = []flag[CQFlags]{{CQSingleThreaded, "SINGLE_THREADED"}, {CQIgnoreOverrun, "IGNORE_OVERRUN"}}

// String lists the flags as libibverbs names them.
func (f CQFlags) String() string { return listed(cqFlagNames, f) }

var cqWCFlagNames = []flag[CQWCFlags]{
	{WCExWithByteLen, "BYTE_LEN"}, {WCExWithImm, "IMM"}, {WCExWithQPNum, "QP_NUM"}, {WCExWithSrcQP, "SRC_QP"}, {WCExWithSLID, "SLID"},
	{WCExWithSL, "SL"}, {WCExWithDLIDPathBits, "DLID_PATH_BITS"}, {WCExWithCVLAN, "CVLAN"}, {WCExWithCompletionTimestamp, "COMPLETION_TIMESTAMP"},
	{WCExWithFlowTag, "FLOW_TAG"}, {WCExWithTMInfo, "TM_INFO"}, {WCExWithCompletionTimestampWallclock, "COMPLETION_TIMESTAMP_WALLCLOCK"},
}

// String lists what completions carry as libibverbs names it.
func (f CQWCFlags) String() string { return listed(cqWCFlagNames, f) }

var srqAttrNames = []flag[SRQAttrMask]{{SRQMaxWR, "MAX_WR"}, {SRQLimit, "LIMIT"}}

// String lists the attributes as libibverbs names them.
func (m SRQAttrMask) String() string { return listed(srqAttrNames, m) }

var reregNames = []flag[ReregFlags]{{ReregChangeTranslation, "CHANGE_TRANSLATION"}, {ReregChangePD, "CHANGE_PD"}, {ReregChangeAccess, "CHANGE_ACCESS"}}

// String lists the changes as libibverbs names them.
func (f ReregFlags) String() string { return listed(reregNames, f) }

var joinNames = []flag[JoinFlags]{{JoinFullMember, "FULLMEMBER"}, {JoinSendOnlyFullMember, "SENDONLY_FULLMEMBER"}}

// String names the kind as librdmacm does.
func (f JoinFlags) String() string { return listed(joinNames, f) }
