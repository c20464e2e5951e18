package ring

import "fmt"

// flag is a bit of a mask, with its name.
type flag[M ~uint8 | ~uint16 | ~uint32] struct {
	bit  M
	name string
}

// listed names the bits of a mask, in the order of the names. Bits without a name follow as a number.
func listed[M ~uint8 | ~uint16 | ~uint32](names []flag[M], mask M) string {
	text := ""
	for _, one := range names {
		if mask&one.bit != 0 {
			text += ", " + one.name
			mask &^= one.bit
		}
	}
	if mask != 0 {
		text += fmt.Sprintf(", 0x%x", uint32(mask))
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
	{DeviceNNotifyCQ, "N_NOTIFY_CQ"},
}

// String lists the abilities as ibv_devinfo does.
func (f DeviceCapFlags) String() string { return listed(deviceCapNames, f) }

// String names the one that a RoCE v2 port has.
func (f PortCapFlags) String() string {
	return listed([]flag[PortCapFlags]{{PortCapIPBasedGIDs, "IP_BASED_GIDS"}}, f)
}
