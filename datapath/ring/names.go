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

var rateNames = []string{
	RatePortCurrent: "the port's rate",
	Rate2p5Gbps:     "2.5 Gbit/s",
	Rate5Gbps:       "5 Gbit/s",
	Rate10Gbps:      "10 Gbit/s",
	Rate20Gbps:      "20 Gbit/s",
	Rate30Gbps:      "30 Gbit/s",
	Rate40Gbps:      "40 Gbit/s",
	Rate60Gbps:      "60 Gbit/s",
	Rate80Gbps:      "80 Gbit/s",
	Rate120Gbps:     "120 Gbit/s",
	Rate14Gbps:      "14 Gbit/s",
	Rate56Gbps:      "56 Gbit/s",
	Rate112Gbps:     "112 Gbit/s",
	Rate168Gbps:     "168 Gbit/s",
	Rate25Gbps:      "25 Gbit/s",
	Rate100Gbps:     "100 Gbit/s",
	Rate200Gbps:     "200 Gbit/s",
	Rate300Gbps:     "300 Gbit/s",
	Rate28Gbps:      "28 Gbit/s",
	Rate50Gbps:      "50 Gbit/s",
	Rate400Gbps:     "400 Gbit/s",
	Rate600Gbps:     "600 Gbit/s",
	Rate800Gbps:     "800 Gbit/s",
	Rate1200Gbps:    "1200 Gbit/s",
	Rate1600Gbps:    "1600 Gbit/s",
}

// String gives the rate with its unit.
func (r Rate) String() string { return named(rateNames, r, "RATE") }

var cmEventNames = []string{
	CMEventAddrResolved: "RDMA_CM_EVENT_ADDR_RESOLVED", CMEventAddrError: "RDMA_CM_EVENT_ADDR_ERROR",
	CMEventRouteResolved: "RDMA_CM_EVENT_ROUTE_RESOLVED", CMEventRouteError: "RDMA_CM_EVENT_ROUTE_ERROR",
	CMEventConnectRequest: "RDMA_CM_EVENT_CONNECT_REQUEST", CMEventConnectResponse: "RDMA_CM_EVENT_CONNECT_RESPONSE",
	CMEventConnectError: "RDMA_CM_EVENT_CONNECT_ERROR", CMEventUnreachable: "RDMA_CM_EVENT_UNREACHABLE",
	CMEventRejected: "RDMA_CM_EVENT_REJECTED", CMEventEstablished: "RDMA_CM_EVENT_ESTABLISHED",
	CMEventDisconnected: "RDMA_CM_EVENT_DISCONNECTED", CMEventDeviceRemoval: "RDMA_CM_EVENT_DEVICE_REMOVAL",
	CMEventMulticastJoin: "RDMA_CM_EVENT_MULTICAST_JOIN", CMEventMulticastError: "RDMA_CM_EVENT_MULTICAST_ERROR",
	CMEventAddrChange: "RDMA_CM_EVENT_ADDR_CHANGE", CMEventTimewaitExit: "RDMA_CM_EVENT_TIMEWAIT_EXIT",
}

// String names the event as rdma_event_str(3) does.
func (t CMEventType) String() string { return named(cmEventNames, t, "event") }
