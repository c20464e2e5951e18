//go:build linux

package hca

import (
	"fmt"
	"math"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/release"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// queryDevice carries out provider.QueryDevice.
func queryDevice(s *Session) (verbs.DeviceAttr, error) {
	if err := s.enter(); err != nil {
		return verbs.DeviceAttr{}, err
	}
	card, limits := s.card, &s.config.Limits
	defer card.mu.Unlock()
	attr := verbs.DeviceAttr{
		Name: card.Name(), FirmwareVersion: release.Version(), NodeGUID: guid(card.port().MAC), PhysicalPorts: 1,
		MaxQP: limits.QPs, MaxQPWR: maxQPWR, MaxSGE: ring.MaxSGE, MaxInline: maxInline, MaxCQ: limits.CQs, MaxCQE: maxCQE,
		MaxSRQ: limits.SRQs, MaxSRQWR: maxSRQWR, MaxSRQSGE: ring.MaxSGE,
		MaxMR: limits.MRs, MaxMW: limits.MRs, MaxMRSize: s.config.Quota.MostMemory(min(maxMRSize, limits.Memory)), MaxFastRegPageListLen: ring.MaxRegEntries, MaxPD: limits.PDs, MaxAH: limits.AHs, MaxPKeys: 1,
		MaxQPRDAtom: maxRDAtomic, MaxQPInitRDAtom: maxRDAtomic, MaxResRDAtom: maxRDAtomic * limits.QPs,
		MaxMcastGrp: s.config.Quota.Most(groupLimits.Groups), MaxMcastQPAttach: groupLimits.QPsPerGroup, MaxTotalMcastQPAttach: limits.Attachments,
	}
	describeCard(&attr)
	attr.Workers = uint8(card.engine.Number())
	modes := card.host.Modes()
	attr.XDPMode, attr.AFXDPMode, attr.SendMode, attr.SendReason = modes.XDP, modes.Socket, modes.Send, modes.SendReason
	return attr, nil
}

// vendor is who has made the device: "roc". Programs take 0 and 0xFFFFFF for a device that they cannot use. The IEEE
// assigns no number like this one to anybody: its first byte ends in 0010, which is left to local administration
// (IEEE 802c, 8.4.4.3: AAI).
const vendor = 0x726F63

// describeCard fills in what is the same for every card.
func describeCard(attr *verbs.DeviceAttr) {
	attr.SysImageGUID, attr.VendorID = attr.NodeGUID, vendor
	attr.PageSizeCap = 0xFFFFF000 // from 4 KiB on
	attr.CapFlags = verbs.DeviceBadPKeyCntr | verbs.DeviceBadQKeyCntr | verbs.DeviceCurrQPStateMod | verbs.DevicePortActiveEvent |
		verbs.DeviceSysImageGUID | verbs.DeviceSRQResize | verbs.DeviceNNotifyCQ |
		verbs.DeviceRCRNRNAKGen | verbs.DeviceMemWindow | verbs.DeviceMemWindowType2B | verbs.DeviceXRC | verbs.DeviceMemMgtExtensions
	attr.AtomicCap = verbs.AtomicHCA
	attr.CompletionTimestampMask, attr.HCACoreClock = math.MaxUint64, 1e6 // ns
	attr.MaxCQCount, attr.MaxCQPeriod = math.MaxUint16, math.MaxUint16
}

// guid makes the EUI-64 of a MAC address (RFC 4291, appendix A).
func guid(m wire.MAC) (g uint64) {
	for _, b := range []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]} {
		g = g<<8 | uint64(b)
	}
	return g
}

// queryRTValues carries out provider.QueryRTValues.
func queryRTValues(s *Session) (verbs.RTValues, error) {
	if err := s.enter(); err != nil {
		return verbs.RTValues{}, err
	}
	defer s.card.mu.Unlock()
	return verbs.RTValues{RawClock: s.card.engine.Clock()}, nil
}

func checkPort(port uint8) error {
	if port != 1 {
		return fmt.Errorf("%w: port %d; the device has port 1", verbs.ErrInvalid, port)
	}
	return nil
}

// queryGIDTable carries out provider.QueryGIDTable.
func queryGIDTable(s *Session, r provider.QueryGIDTableRequest) (grant provider.QueryGIDTableGrant, err error) {
	if err := checkPort(r.Port); err != nil {
		return grant, err
	}
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	port := s.card.port()
	grant.Length = len(port.gids.lines)
	grant.Entries = port.gids.entries(s.card.Name(), port.Index)
	return grant, nil
}

// queryPKey carries out provider.QueryPKey.
func queryPKey(s *Session, r provider.QueryPKeyRequest) (grant provider.QueryPKeyGrant, err error) {
	if err := checkPort(r.Port); err != nil {
		return grant, err
	}
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	if r.Index != 0 {
		return grant, fmt.Errorf("%w: P_Key index %d; the table has index 0", verbs.ErrInvalid, r.Index)
	}
	return provider.QueryPKeyGrant{PKey: wire.PKeyDefault}, nil
}

// queryPort carries out provider.QueryPort.
func queryPort(s *Session, r provider.QueryPortRequest) (verbs.PortAttr, error) {
	if err := checkPort(r.Port); err != nil {
		return verbs.PortAttr{}, err
	}
	if err := s.enter(); err != nil {
		return verbs.PortAttr{}, err
	}
	card := s.card
	defer card.mu.Unlock()
	port, drops := card.port(), card.engine.Counters().Drops
	attr := verbs.PortAttr{
		State: verbs.PortDown, MaxMTU: port.largestMTU(), ActiveMTU: port.rdma, GIDTableLen: len(port.gids.lines), PKeyTableLen: 1,
		MaxMsgSize: ring.MaxMessage, QKeyViolations: drops[datapath.DropQKey], InterfaceMTU: port.MTU,
		PhysState: physState(&port.Port), LinkLayer: verbs.LinkLayerEthernet, CapFlags: verbs.PortCapIPBasedGIDs, MaxVLNum: 1,
		PKeyViolations: drops[datapath.DropPKey], InterfaceSpeed: port.Speed,
	}
	if port.Up {
		attr.State = verbs.PortActive
	}
	attr.ActiveWidth, attr.ActiveSpeed = widthAndSpeed(port.Speed)
	return attr, nil
}

func physState(status *network.Port) verbs.PortPhysState {
	switch {
	case status.Up:
		return verbs.PhysStateLinkUp
	case status.Enabled:
		return verbs.PhysStatePolling
	}
	return verbs.PhysStateDisabled
}

// The numbers of widths and speeds (IBA 14.2.5.6).
const (
	width1x, width4x, width2x     = 1, 2, 16
	speed2G5, speed5G, speed10G   = 1, 2, 8 // the last is FDR-10
	speed25G, speed50G, speed100G = 32, 64, 128
)

// ethernetLinks are the links by which the kernel describes an Ethernet interface: the first that is
// fast enough (ib_get_eth_speed).
var ethernetLinks = []struct {
	mbps         int // at most
	width, speed uint8
}{
	{1000, width1x, speed2G5}, {10000, width1x, speed10G}, {20000, width4x, speed5G}, {25000, width1x, speed25G},
	{40000, width4x, speed10G}, {50000, width2x, speed25G}, {100000, width4x, speed25G}, {200000, width4x, speed50G},
}

func widthAndSpeed(mbps int) (width, speed uint8) {
	for _, link := range ethernetLinks {
		if mbps <= link.mbps {
			return link.width, link.speed
		}
	}
	return width4x, speed100G
}
