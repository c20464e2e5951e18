package ring

import "fmt"

// named returns a number's name from a list; a number without a name prints as kind(number).
func named[N ~uint8](names []string, number N, kind string) string {
	if int(number) < len(names) && names[number] != "" {
		return names[number]
	}
	return fmt.Sprintf("%s(%d)", kind, uint8(number))
}

var opcodeNames = []string{
	"RDMA write", "RDMA write with immediate", "send", "send with immediate", "RDMA read",
	"compare and swap", "fetch and add", "local invalidate", "bind memory window", "send with invalidate",
}

// String names the operation.
func (o Opcode) String() string { return named(opcodeNames, o, "operation") }

var statusNames = []string{
	"success", "local length error", "local QP operation error", "local EE context operation error",
	"local protection error", "Work Request Flushed Error", "memory management operation error",
	"bad response error", "local access error", "remote invalid request error", "remote access error",
	"remote operation error", "transport retry counter exceeded", "RNR retry counter exceeded",
	"local RDD violation error", "remote invalid RD request", "aborted error", "invalid EE context number",
	"invalid EE context state", "fatal error", "response timeout error", "general error",
}

var wcOpcodeNames = []string{
	WCSend: "send", WCRDMAWrite: "RDMA write", WCRDMARead: "RDMA read", WCCompSwap: "compare and swap", WCFetchAdd: "fetch and add",
	WCBindMW: "bind memory window", WCLocalInv: "local invalidate", WCRecv: "receive", WCRecvRDMAWithImm: "receive RDMA with immediate",
}

// String names what completed.
func (o WCOpcode) String() string { return named(wcOpcodeNames, o, "operation") }

// String names the status as libibverbs' ibv_wc_status_str does.
func (s WCStatus) String() string { return named(statusNames, s, "status") }

var stateNames = []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// String names the state as the specification does.
func (s QPState) String() string { return named(stateNames, s, "STATE") }

var typeNames = []string{0: "SMI", 1: "GSI", 2: "RC", 3: "UC", 4: "UD", 8: "RAW_PACKET", 9: "XRC_SEND", 10: "XRC_RECV"}

// String names the service as the specification does.
func (t QPType) String() string { return named(typeNames, t, "TYPE") }

var linkLayerNames = []string{"unspecified", "InfiniBand", "Ethernet"}

// String names the link layer.
func (l LinkLayer) String() string { return named(linkLayerNames, l, "link layer") }

var portNames = []string{PortDown: "PORT_DOWN", PortActive: "PORT_ACTIVE"}

// String names the state as ibv_devinfo does.
func (s PortState) String() string { return named(portNames, s, "PORT_STATE") }

var physNames = []string{PhysStatePolling: "POLLING", PhysStateDisabled: "DISABLED", PhysStateLinkUp: "LINK_UP"}

// String names the state as ibv_devinfo does.
func (s PortPhysState) String() string { return named(physNames, s, "PHYS_STATE") }

var gidTypeNames = []string{"IB", "RoCE v1", "RoCE v2"}

// String names the type as sysfs does.
func (t GIDType) String() string { return named(gidTypeNames, t, "GID_TYPE") }

var eventNames = []string{
	EventCQErr: "CQ error", EventQPFatal: "local work queue catastrophic error",
	EventQPReqErr: "invalid request local work queue error", EventQPAccessErr: "local access violation work queue error",
	EventCommEst: "communication established", EventSQDrained: "send queue drained",
	EventPathMig: "path migrated", EventPathMigErr: "path migration request error",
	EventDeviceFatal: "local catastrophic error", EventPortActive: "port active", EventPortErr: "port error",
	EventSRQErr: "SRQ catastrophic error", EventSRQLimitReached: "SRQ limit reached",
	EventQPLastWQEReached: "last WQE reached", EventGIDChange: "GID table change", EventMTUChange: "active MTU change",
}

// String names the event as ibv_event_type_str(3) does.
func (t EventType) String() string { return named(eventNames, t, "event") }

// attrNames is in the order of the bits.
var attrNames = []struct {
	bit  QPAttrMask
	name string
}{
	{QPAttrState, "state"}, {QPAttrCurState, "current state"}, {QPAttrEnSQDAsyncNotify, "SQD event"}, {QPAttrAccessFlags, "access flags"},
	{QPAttrPKeyIndex, "P_Key index"}, {QPAttrPort, "port"}, {QPAttrQKey, "Q_Key"}, {QPAttrAV, "address vector"}, {QPAttrPathMTU, "path MTU"},
	{QPAttrTimeout, "timeout"}, {QPAttrRetryCnt, "retry count"}, {QPAttrRNRRetry, "RNR retry count"}, {QPAttrRQPSN, "RQ PSN"},
	{QPAttrMaxQPRDAtomic, "max_rd_atomic"}, {QPAttrAltPath, "alternate path"}, {QPAttrMinRNRTimer, "RNR timer"}, {QPAttrSQPSN, "SQ PSN"},
	{QPAttrMaxDestRDAtomic, "max_dest_rd_atomic"}, {QPAttrPathMigState, "path migration state"}, {QPAttrCap, "capabilities"},
	{QPAttrDestQPN, "destination QPN"}, {QPAttrRateLimit, "rate limit"},
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
