// SPDX-License-Identifier: Apache-2.0

package ib

import (
	"github.com/roced/roced/datapath/wire"
)

// DeviceAttr describes the capabilities and limits of a device (ibv_device_attr and ibv_device_attr_ex). Capabilities
// of those structures that have no field here are 0: on-demand paging, raw packets, tag matching, TCP offloads.
type DeviceAttr struct {
	Name                  string // of the interface
	FirmwareVersion       string // version of roced
	NodeGUID              uint64
	MaxQP                 int
	MaxQPWR               int // work requests per queue
	MaxSGE                int
	MaxInline             int // bytes
	MaxSRQ                int
	MaxSRQWR              int // receives per SRQ
	MaxSRQSGE             int
	MaxCQ                 int
	MaxCQE                int
	MaxMR                 int
	MaxMRSize             uint64 // bytes; limited by the user's quota
	MaxMW                 int    // regions and windows together are limited by MaxMR
	MaxPD                 int
	MaxAH                 int
	MaxPKeys              int
	MaxMcastGrp           int // groups
	MaxMcastQPAttach      int // queue pairs per group
	MaxTotalMcastQPAttach int
	PhysicalPorts         int
	XDPMode               string // "native", "generic", or "none" (in-memory network, UDP sockets)
	AFXDPMode             string // "copy", "zero-copy", "udp" (UDP sockets instead), or "none"
	// SendMode is the current method of sending bursts of packets: "trains" (several packets per frame given to the
	// kernel), "af_xdp" and "single" (one by one, the latter over UDP sockets), or "none".
	SendMode   string
	SendReason string // reason why bursts are not sent as trains; empty if they are
	Workers    uint8  // number of workers that serve programs; 0 if the service does not report it

	SysImageGUID uint64
	VendorID     uint32 // an IEEE number, or an unassigned one; neither 0 nor 0xffffff
	VendorPartID uint32
	HWVer        uint32
	PageSizeCap  uint64 // bit mask of page sizes in bytes; regions need no alignment
	CapFlags     DeviceCapFlags
	AtomicCap    AtomicCap

	MaxQPRDAtom     int // maximum reads and atomics that a queue pair accepts at once (QPAttr.MaxDestRDAtomic)
	MaxQPInitRDAtom int // maximum outstanding reads and atomics of a queue pair (QPAttr.MaxRDAtomic)
	MaxResRDAtom    int // maximum reads and atomics that all queue pairs together accept at once

	// CompletionTimestampMask has the valid bits of completions' timestamps. HCACoreClock is their rate in kHz:
	// timestamps are in ns.
	CompletionTimestampMask uint64
	HCACoreClock            uint64
	MaxCQCount, MaxCQPeriod uint16 // the limits of CQ moderation; the period in microseconds
	MaxFastRegPageListLen   int    // entries of a fast region; see AllocFastMR of package kernel
}

// PortAttr is the state of a port (ibv_port_attr).
type PortAttr struct {
	State  PortState
	MaxMTU wire.MTU // the largest MTU of the device, independent of the interface's MTU
	// ActiveMTU is the largest MTU up to MaxMTU that the interface's MTU permits. If it permits none, the port is down
	// and ActiveMTU keeps its value.
	ActiveMTU      wire.MTU
	GIDTableLen    int
	PKeyTableLen   int
	MaxMsgSize     uint32 // bytes, for connected queue pairs; a datagram has at most the active MTU
	QKeyViolations uint64
	InterfaceMTU   int // bytes

	PhysState      PortPhysState
	LinkLayer      LinkLayer // Ethernet
	CapFlags       PortCapFlags
	PKeyViolations uint64 // bad_pkey_cntr
	// ActiveWidth (1: 1x, 2: 4x, 4: 8x, 8: 12x, 16: 2x) and ActiveSpeed (1: 2.5 Gbit/s per lane, 2: 5, 4 and 8: 10, 16:
	// 14, 32: 25, 64: 50, 128: 100) are the kernel's description of an Ethernet link of at least InterfaceSpeed; of 1
	// Gbit/s if that is unknown.
	ActiveWidth    uint8
	ActiveSpeed    uint8
	InterfaceSpeed int   // Mbit/s; 0 if unknown, for example without a carrier
	MaxVLNum       uint8 // virtual lanes: 1

	// Values of a subnet manager: 0.
	LID, SMLID                   uint16
	LMC, SMSL                    uint8
	SubnetTimeout, InitTypeReply uint8
}

// GIDEntry is an entry of the GID table; all entries are of RoCE v2. Each address of the interface has its own entry,
// at the same index as long as the interface has the address. Index 0 is the default: a routable IPv4 address, or else
// a copy of the best other entry (IPv6, then link-local).
type GIDEntry struct {
	GID       wire.GID
	Index     int
	Interface string
	IfIndex   uint32 // of the interface (ndev_ifindex); 0 on an in-memory network
	Type      GIDType
	Port      uint8
}

// RTValues are current values of the card (ibv_values_ex).
type RTValues struct {
	// RawClock is the free-running clock of completions' timestamps, in ns. It is the host's CLOCK_MONOTONIC, so
	// timestamps of cards on one host are comparable.
	RawClock uint64
}

// Device is a device that can be opened (ibv_device).
type Device struct {
	Name  string // name in the service, for Dial; on the host, the interface name for hca.Open
	Index int    // index of the interface, unique while the host runs (ibv_get_device_index); -1 on an in-memory network
	GUID  uint64 // derived from its MAC address (ibv_get_device_guid); DeviceAttr.NodeGUID
}

// DeviceClient receives changes of the device list (ib_client). Either function may be nil. The watching goroutine
// calls them one after the other.
type DeviceClient struct {
	Add    func(Device) // the device exists or was added
	Remove func(Device) // the device was removed, or its card has failed
}

// MaxDMSize is the maximum device memory of a session in bytes (max_dm_size).
const MaxDMSize = 4 << 20
