package verbs

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
)

// The types of the field, by the names that programs use. Their methods are shown by
// go doc ./datapath/wire.
type (
	QPN  = wire.QPN
	PSN  = wire.PSN
	QKey = wire.QKey
	PKey = wire.PKey
	GID  = wire.GID
	MTU  = wire.MTU
	GRH  = wire.GRH
	MLID = wire.MLID
	MAC  = wire.MAC
)

// The MTUs (ibv_mtu): so many bytes of payload a packet.
const (
	MTU256  = wire.MTU256
	MTU512  = wire.MTU512
	MTU1024 = wire.MTU1024
	MTU2048 = wire.MTU2048
	MTU4096 = wire.MTU4096
)

// GIDFromAddr is an IP address as a GID, which names a destination: ::ffff:a.b.c.d for IPv4
// (IBA A17.4.4). The GID's Addr undoes it.
func GIDFromAddr(address netip.Addr) GID { return wire.GIDFromAddr(address) }

// DeviceAttr is what a device can do (ibv_device_attr).
type DeviceAttr struct {
	Name                  string // the interface's
	FirmwareVersion       string // roced's
	NodeGUID              uint64
	MaxQP                 int
	MaxQPWR               int // work requests a queue
	MaxSGE                int
	MaxInline             int // bytes
	MaxCQ                 int
	MaxCQE                int
	MaxMR                 int
	MaxMRSize             uint64 // bytes
	MaxPD                 int
	MaxAH                 int
	MaxPKeys              int
	MaxMcastGrp           int // groups
	MaxMcastQPAttach      int // queue pairs to a group
	MaxTotalMcastQPAttach int
	PhysicalPorts         int
	XDPMode               string // "native", "generic", or "none" on a wire in memory
	AFXDPMode             string // "copy", "zero-copy", or "none"
}

// PortAttr is the state of a port (ibv_port_attr).
type PortAttr struct {
	State          PortState
	MaxMTU         MTU // as the device was opened: raising the interface's MTU later does not change it
	ActiveMTU      MTU // the largest up to MaxMTU that the interface's MTU allows now
	GIDTableLen    int
	PKeyTableLen   int
	MaxMsgSize     uint32 // bytes
	QKeyViolations uint64
	InterfaceMTU   int // bytes
}

// GIDEntry is a line of the GID table. All are of RoCE v2. Each address of the interface has a
// line of its own, which it keeps as long as it stays. Line 0 is the default: a routable IPv4
// address, or where there is none, a copy of the best other line (IPv6, then link-local).
type GIDEntry struct {
	GID       GID
	Index     int
	Interface string
}
