// SPDX-License-Identifier: Apache-2.0

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
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// queryDevice carries out provider.QueryDevice.
func queryDevice(o *owner) (verbs.DeviceAttr, error) {
	if err := o.enter(); err != nil {
		return verbs.DeviceAttr{}, err
	}
	d, limits := o.device, &o.config.Limits
	defer o.leave()
	attr := verbs.DeviceAttr{
		Name: d.port.Name(), FirmwareVersion: release.Version(), NodeGUID: d.port.GUID(), PhysicalPorts: 1,
		MaxQP: limits.QPs, MaxQPWR: maxQPWR, MaxSGE: ring.MaxSGE, MaxInline: maxInline, MaxCQ: limits.CQs, MaxCQE: maxCQE,
		MaxSRQ: limits.SRQs, MaxSRQWR: maxSRQWR, MaxSRQSGE: ring.MaxSGE,
		MaxMR: limits.MRs, MaxMW: limits.MRs, MaxMRSize: o.config.Quota.MostMemory(min(maxMRSize, limits.Memory)), MaxFastRegPageListLen: ring.MaxRegEntries, MaxPD: limits.PDs, MaxAH: limits.AHs, MaxPKeys: 1,
		MaxQPRDAtom: maxRDAtomic, MaxQPInitRDAtom: maxRDAtomic, MaxResRDAtom: maxRDAtomic * limits.QPs,
		MaxMcastGrp: o.config.Quota.Most(groupLimits.Groups), MaxMcastQPAttach: groupLimits.QPsPerGroup, MaxTotalMcastQPAttach: limits.Attachments,
	}
	describeDevice(&attr)
	attr.Workers = uint8(d.engine.Number())
	modes := d.host.Modes()
	attr.XDPMode, attr.AFXDPMode, attr.SendMode, attr.SendReason = modes.XDP, modes.Socket, modes.Send, modes.SendReason
	return attr, nil
}

// vendor is the vendor ID of the device: "roc". Programs interpret 0 and 0xFFFFFF as an unusable device. The IEEE
// assigns no such number: its first byte ends in 0010, which is reserved for local administration (IEEE 802c, 8.4.4.3:
// AAI).
const vendor = 0x726F63

// describeDevice sets the attributes that are the same for every card.
func describeDevice(attr *verbs.DeviceAttr) {
	attr.SysImageGUID, attr.VendorID = attr.NodeGUID, vendor
	attr.PageSizeCap = 0xFFFFF000 // 4 KiB and larger
	attr.CapFlags = ib.DeviceBadPKeyCntr | ib.DeviceBadQKeyCntr | ib.DeviceCurrQPStateMod | ib.DevicePortActiveEvent |
		ib.DeviceSysImageGUID | ib.DeviceSRQResize | ib.DeviceNNotifyCQ |
		ib.DeviceRCRNRNAKGen | ib.DeviceMemWindow | ib.DeviceMemWindowType2B | ib.DeviceXRC | ib.DeviceMemMgtExtensions
	attr.AtomicCap = ib.AtomicHCA
	attr.CompletionTimestampMask, attr.HCACoreClock = math.MaxUint64, 1e6 // ns
	attr.MaxCQCount, attr.MaxCQPeriod = math.MaxUint16, math.MaxUint16
}

// queryRTValues carries out provider.QueryRTValues.
func queryRTValues(o *owner) (verbs.RTValues, error) {
	if err := o.enter(); err != nil {
		return verbs.RTValues{}, err
	}
	defer o.leave()
	return verbs.RTValues{RawClock: o.device.engine.Clock()}, nil
}

// queryGIDTable carries out provider.QueryGIDTable.
func queryGIDTable(o *owner, r provider.QueryGIDTableRequest) (grant provider.QueryGIDTableGrant, err error) {
	if err := checkPort(r.Port); err != nil {
		return grant, err
	}
	if err := o.enter(); err != nil {
		return grant, err
	}
	defer o.leave()
	now := o.device.port.Now()
	grant.Length = now.GIDs.Len()
	grant.Entries = now.GIDs.Entries(o.device.port.Name(), now.Index)
	return grant, nil
}

// queryPKey carries out provider.QueryPKey.
func queryPKey(o *owner, r provider.QueryPKeyRequest) (grant provider.QueryPKeyGrant, err error) {
	if err := checkPort(r.Port); err != nil {
		return grant, err
	}
	if err := o.enter(); err != nil {
		return grant, err
	}
	defer o.leave()
	if r.Index != 0 {
		return grant, fmt.Errorf("%w: P_Key index %d; the table has only index 0", verbs.ErrInvalid, r.Index)
	}
	return provider.QueryPKeyGrant{PKey: wire.PKeyDefault}, nil
}

// queryPort carries out provider.QueryPort.
func queryPort(o *owner, r provider.QueryPortRequest) (verbs.PortAttr, error) {
	if err := checkPort(r.Port); err != nil {
		return verbs.PortAttr{}, err
	}
	if err := o.enter(); err != nil {
		return verbs.PortAttr{}, err
	}
	d := o.device
	defer o.leave()
	now, drops := d.port.Now(), d.engine.Counters().Drops
	attr := verbs.PortAttr{
		State: verbs.PortDown, MaxMTU: now.LargestMTU(), ActiveMTU: now.RDMA, GIDTableLen: now.GIDs.Len(), PKeyTableLen: 1,
		MaxMsgSize: ring.MaxMessage, QKeyViolations: drops[datapath.DropQKey], InterfaceMTU: now.MTU,
		PhysState: physState(&now.Port), LinkLayer: ib.LinkLayerEthernet, CapFlags: ib.PortCapIPBasedGIDs, MaxVLNum: 1,
		PKeyViolations: drops[datapath.DropPKey], InterfaceSpeed: now.Speed,
	}
	if now.Up {
		attr.State = verbs.PortActive
	}
	attr.ActiveWidth, attr.ActiveSpeed = widthAndSpeed(now.Speed)
	return attr, nil
}

func physState(status *network.Port) ib.PortPhysState {
	switch {
	case status.Up:
		return ib.PhysStateLinkUp
	case status.Enabled:
		return ib.PhysStatePolling
	}
	return ib.PhysStateDisabled
}

// The numbers of widths and speeds (IBA 14.2.5.6).
const (
	width1x, width4x, width2x     = 1, 2, 16
	speed2G5, speed5G, speed10G   = 1, 2, 8 // the last is FDR-10
	speed25G, speed50G, speed100G = 32, 64, 128
)

// ethernetLinks are the link types by which the kernel describes an Ethernet interface: the first that is fast enough
// (ib_get_eth_speed).
var ethernetLinks = []struct {
	mbps         int // maximum
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
