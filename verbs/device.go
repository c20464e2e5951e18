// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Addresses, numbers and keys in packets. For their methods see go doc ./datapath/wire.
type (
	// QPN is the number of a queue pair, 24 bits. MulticastQPN is the number for messages to groups.
	QPN = wire.QPN
	// SRQN is the number of a shared receive queue of type XRC, 24 bits.
	SRQN = wire.SRQN
	// PSN is a packet sequence number, 24 bits.
	PSN = wire.PSN

	// QKey is a Q_Key: a queue pair drops datagrams with a different Q_Key. UDPQKey is that of rdma_cm.
	QKey = wire.QKey
	// PKey is a partition key; a port has only the default one, 0xFFFF.
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

// DeviceAttr describes the capabilities and limits of a device (ibv_device_attr and ibv_device_attr_ex). Capabilities
// of those structures that have no field here are 0: fast registration, on-demand paging, raw packets, tag matching,
// TCP offloads.
//
// See [ib.DeviceAttr] for its fields.
type DeviceAttr = ib.DeviceAttr

// Device is a device that can be opened (ibv_device). client.ListDevices lists the devices of the service,
// hca.ListDevices the host's interfaces.
//
// See [ib.Device] for its fields.
type Device = ib.Device

// DeviceClient receives the existing devices and their additions and removals (ib_client), from client.WatchDevices and
// hca.WatchDevices.
//
// See [ib.DeviceClient] for its fields.
type DeviceClient = ib.DeviceClient

// PortAttr is the state of a port (ibv_port_attr).
//
// See [ib.PortAttr] for its fields.
type PortAttr = ib.PortAttr

// GIDEntry is an entry of the GID table; all entries are of RoCE v2. Each address of the interface has its own entry,
// at the same index as long as the interface has the address. Index 0 is the default: a routable IPv4 address, or
// else a copy of the best other entry (IPv6, then link-local).
//
// See [ib.GIDEntry] for its fields.
type GIDEntry = ib.GIDEntry
