package ib

import (
	"github.com/roced/roced/datapath/wire"
)

// DeviceAttr is what a device can do (ibv_device_attr and ibv_device_attr_ex). What those have besides
// is 0 here: on-demand paging, raw packets, tag matching, offloads of TCP.
type DeviceAttr struct {
	Name                  string // the interface's
	FirmwareVersion       string // roced's
	NodeGUID              uint64
	MaxQP                 int
	MaxQPWR               int // work requests a queue
	MaxSGE                int
	MaxInline             int // bytes
	MaxSRQ                int
	MaxSRQWR              int // receives an SRQ
	MaxSRQSGE             int
	MaxCQ                 int
	MaxCQE                int
	MaxMR                 int
	MaxMRSize             uint64 // bytes; no more than the user may have
	MaxMW                 int    // regions and windows together are at most MaxMR
	MaxPD                 int
	MaxAH                 int
	MaxPKeys              int
	MaxMcastGrp           int // groups
	MaxMcastQPAttach      int // queue pairs to a group
	MaxTotalMcastQPAttach int
	PhysicalPorts         int
	XDPMode               string // "native", "generic", or "none": on a network in memory, over UDP sockets
	AFXDPMode             string // "copy", "zero-copy", "udp" (UDP sockets instead), or "none"
	// SendMode is how bursts of packets leave now: "trains" (the kernel gets several in one frame),
	// "af_xdp" and "single" (each by itself, over UDP sockets the latter), or "none".
	SendMode   string
	SendReason string // why bursts do not leave in trains; empty if they do
	Workers    uint8  // that serve programs; 0 if the service does not say

	SysImageGUID uint64
	VendorID     uint32 // the IEEE's number, or one that it assigns to nobody; neither 0 nor 0xffffff
	VendorPartID uint32
	HWVer        uint32
	PageSizeCap  uint64 // a bit for each size of pages, in bytes; regions need no alignment
	CapFlags     DeviceCapFlags
	AtomicCap    AtomicCap

	MaxQPRDAtom     int // reads and atomics that a queue pair answers at once (QPAttr.MaxDestRDAtomic)
	MaxQPInitRDAtom int // that it may have outstanding (QPAttr.MaxRDAtomic)
	MaxResRDAtom    int // that all queue pairs together answer at once

	// CompletionTimestampMask has the bits that completions' timestamps have. HCACoreClock is the
	// rate at which they count, in kHz: in ns.
	CompletionTimestampMask uint64
	HCACoreClock            uint64
	MaxCQCount, MaxCQPeriod uint16 // the limits of CQ moderation; the period in microseconds
	MaxFastRegPageListLen   int    // entries of a fast region; see AllocFastMR of package kernel
}

// PortAttr is the state of a port (ibv_port_attr).
type PortAttr struct {
	State  PortState
	MaxMTU wire.MTU // the largest that the device can have, whatever the interface's MTU is now
	// ActiveMTU is the largest, up to MaxMTU, that the interface's MTU allows now; while it allows none,
	// and the port is down, the one before.
	ActiveMTU      wire.MTU
	GIDTableLen    int
	PKeyTableLen   int
	MaxMsgSize     uint32 // bytes, of connected queue pairs; a datagram has at most the active MTU
	QKeyViolations uint64
	InterfaceMTU   int // bytes

	PhysState      PortPhysState
	LinkLayer      LinkLayer // Ethernet
	CapFlags       PortCapFlags
	PKeyViolations uint64 // bad_pkey_cntr
	// ActiveWidth (1: 1x, 2: 4x, 4: 8x, 8: 12x, 16: 2x) and ActiveSpeed (1: 2.5 Gbit/s a lane, 2: 5,
	// 4 and 8: 10, 16: 14, 32: 25, 64: 50, 128: 100) are those by which the kernel describes an
	// Ethernet link of at least InterfaceSpeed; of 1 Gbit/s if that is not known.
	ActiveWidth    uint8
	ActiveSpeed    uint8
	InterfaceSpeed int   // Mbit/s; 0 if the interface does not tell, as without a carrier
	MaxVLNum       uint8 // virtual lanes: 1

	// What only a subnet manager would give, and is 0.
	LID, SMLID                   uint16
	LMC, SMSL                    uint8
	SubnetTimeout, InitTypeReply uint8
}

// GIDEntry is an entry of the GID table; all are of RoCE v2. Each address of the interface has an
// entry of its own, at the same index as long as the interface has the address. Index 0 is the
// default: a routable IPv4 address, or, if there is none, a copy of the best other entry (IPv6,
// then link-local).
type GIDEntry struct {
	GID       wire.GID
	Index     int
	Interface string
	IfIndex   uint32 // the interface's (ndev_ifindex); 0 on a network in memory
	Type      GIDType
	Port      uint8
}

// RTValues are values of the card as of now (ibv_values_ex).
type RTValues struct {
	// RawClock is the free-running clock of completions' timestamps, in ns. It is the host's
	// CLOCK_MONOTONIC, so cards of one host can be compared.
	RawClock uint64
}

// Device is a device that can be opened (ibv_device).
type Device struct {
	Name  string // of the service's, what Dial takes; of the host's, the interface that hca.Open takes
	Index int    // the interface's, which no other has while the host runs (ibv_get_device_index); -1 on a network in memory
	GUID  uint64 // ibv_get_device_guid: of its MAC address; DeviceAttr.NodeGUID
}

// DeviceClient is told of devices (ib_client). Either function may be nil. They are called one after the other, by
// the goroutine that watches.
type DeviceClient struct {
	Add    func(Device) // it is there, or has come
	Remove func(Device) // it has gone, or its card has failed
}

// MaxDMSize is the number of bytes of device memory that a session can have (max_dm_size).
const MaxDMSize = 4 << 20
