package verbs

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Addresses, numbers and keys in packets. Their methods: go doc ./datapath/wire.
type (
	// QPN is the number of a queue pair, 24 bits. MulticastQPN is that of messages to groups.
	QPN = wire.QPN
	// SRQN is the number of a shared receive queue of type XRC, 24 bits.
	SRQN = wire.SRQN
	// PSN is a packet sequence number, 24 bits.
	PSN = wire.PSN

	// QKey is a Q_Key: a queue pair drops datagrams with another one. UDPQKey is rdma_cm's.
	QKey = wire.QKey
	// PKey is a partition key; a port has the default one, 0xFFFF.
	PKey = wire.PKey

	// GID is the address of a port or group: an IPv6 address, or ::ffff:a.b.c.d for IPv4.
	GID = wire.GID
	// MLID is the LID of a group, 0 on Ethernet.
	MLID = wire.MLID
	// MAC is a hardware address.
	MAC = wire.MAC

	// GRH is the 40 bytes that precede a datagram in its receive buffer; see WC.Payload.
	GRH = wire.GRH
	// MTU is an RDMA MTU (ibv_mtu): MTU256, MTU512, MTU1024, MTU2048 or MTU4096.
	MTU = wire.MTU
)

// The RDMA MTUs (ibv_mtu), by the bytes of payload in a packet.
const (
	MTU256  = wire.MTU256
	MTU512  = wire.MTU512
	MTU1024 = wire.MTU1024
	MTU2048 = wire.MTU2048
	MTU4096 = wire.MTU4096
)

// GIDFromAddr returns the GID of an IP address: ::ffff:a.b.c.d for IPv4 (IBA A17.4.4). GID.Addr returns the address.
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
