package verbs

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/ib"
)

// Types of package wire that programs use. Their methods: go doc ./datapath/wire.
type (
	// QPN is the number of a queue pair. MulticastQPN is that of messages to groups.
	QPN = wire.QPN
	// SRQN is the number of a shared receive queue of type XRC, 24 bits.
	SRQN = wire.SRQN

	// QKey is a Q_Key. UDPQKey is rdma_cm's.
	QKey = wire.QKey

	// MTU is an RDMA MTU (ibv_mtu): MTU256, MTU512, MTU1024, MTU2048 or MTU4096.
	MTU = wire.MTU

	PSN  = wire.PSN
	PKey = wire.PKey
	GID  = wire.GID
	GRH  = wire.GRH
	MLID = wire.MLID
	MAC  = wire.MAC
)

// The RDMA MTUs (ibv_mtu), by the bytes of payload in a packet.
const (
	MTU256  = wire.MTU256
	MTU512  = wire.MTU512
	MTU1024 = wire.MTU1024
	MTU2048 = wire.MTU2048
	MTU4096 = wire.MTU4096
)

// GIDFromAddr is the GID of an IP address: ::ffff:a.b.c.d for IPv4 (IBA A17.4.4). The GID's Addr
// gives the address back.
func GIDFromAddr(address netip.Addr) GID { return wire.GIDFromAddr(address) }

// DeviceAttr is what a device can do (ibv_device_attr and ibv_device_attr_ex). What those have besides
// is 0 here: fast registration, on-demand paging, raw packets, tag matching, offloads of TCP.
//
// Its fields: [ib.DeviceAttr].
type DeviceAttr = ib.DeviceAttr

// Device is a device that can be opened (ibv_device). client.ListDevices lists those of the service, hca.ListDevices the
// host's interfaces.
//
// Its fields: [ib.Device].
type Device = ib.Device

// DeviceClient is told of devices that are there, come and go (ib_client), by client.WatchDevices and hca.WatchDevices.
//
// Its fields: [ib.DeviceClient].
type DeviceClient = ib.DeviceClient

// PortAttr is the state of a port (ibv_port_attr).
//
// Its fields: [ib.PortAttr].
type PortAttr = ib.PortAttr

// GIDEntry is an entry of the GID table; all are of RoCE v2. Each address of the interface has an
// entry of its own, at the same index as long as the interface has the address. Index 0 is the
// default: a routable IPv4 address, or, if there is none, a copy of the best other entry (IPv6,
// then link-local).
//
// Its fields: [ib.GIDEntry].
type GIDEntry = ib.GIDEntry
