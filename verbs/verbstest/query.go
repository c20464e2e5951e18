// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var queryTests = []rig.Test{
	{Name: "query device", Run: queryDevice},
	{Name: "query device: extended attributes", Run: queryExtended},
	{Name: "query port: all attributes", Run: queryPort},
	{Name: "query port while the link is down", Run: queryDownPort, Needs: func(p *rig.Pair) bool { return p.A.SetLink != nil }},
}

// queryDevice checks that the attributes of device and port are plausible, and that queries of unknown ports, indices
// and GIDs are refused.
func queryDevice(t *testing.T, w *rig.World) {
	s := w.A
	device, err := s.Ctx.QueryDevice()
	rig.Check(t, err)
	for name, n := range map[string]int{
		"MaxQP": device.MaxQP, "MaxQPWR": device.MaxQPWR, "MaxSGE": device.MaxSGE, "MaxInline": device.MaxInline,
		"MaxCQ": device.MaxCQ, "MaxCQE": device.MaxCQE, "MaxMR": device.MaxMR, "MaxMRSize": int(device.MaxMRSize), "MaxPD": device.MaxPD,
		"MaxAH": device.MaxAH, "MaxMcastGrp": device.MaxMcastGrp, "MaxMcastQPAttach": device.MaxMcastQPAttach, "MaxTotalMcastQPAttach": device.MaxTotalMcastQPAttach,
	} {
		if n <= 0 {
			t.Errorf("%s is %d", name, n)
		}
	}
	if device.Name == "" || device.FirmwareVersion == "" || device.NodeGUID == 0 || device.PhysicalPorts != 1 || device.MaxPKeys != 1 {
		t.Errorf("%+v", device)
	}
	port, err := s.Ctx.QueryPort(1)
	rig.Check(t, err)
	mtu := port.ActiveMTU.Bytes()
	if port.State != verbs.PortActive || mtu < 256 || port.ActiveMTU > port.MaxMTU || int(port.MaxMsgSize) < mtu || port.PKeyTableLen != 1 || port.InterfaceMTU < mtu {
		t.Errorf("port %+v", port)
	}
	if key, err := s.Ctx.QueryPKey(1, 0); key != 0xFFFF || err != nil {
		t.Errorf("P_Key %v, %v", key, err)
	}
	queryGIDs(t, s, port)
	queryRefuses(t, s)
}

// queryGIDs checks that the GID table contains each address, and at index 0 the IPv4 address.
func queryGIDs(t *testing.T, s *rig.Station, port verbs.PortAttr) {
	t.Helper()
	gids, err := s.Ctx.QueryGIDTable(1)
	rig.Check(t, err)
	if len(gids) < 3 || len(gids) > port.GIDTableLen {
		t.Errorf("the GID table has %d entries, and %d indices", len(gids), port.GIDTableLen)
	}
	for _, entry := range gids {
		if entry.Type != ib.GIDTypeRoCEv2 || entry.Port != 1 || entry.Index >= port.GIDTableLen || entry.Interface == "" || entry.IfIndex != gids[0].IfIndex {
			t.Errorf("%+v", entry)
		}
	}
	for _, own := range s.End.Addresses() {
		entry, err := s.Ctx.QueryGID(1, s.Line(own))
		rig.Check(t, err)
		if entry.GID != rig.GID(own) {
			t.Errorf("%+v, want %v", entry, own)
		}
		if again, err := s.Ctx.QueryGID(1, entry.Index); again != entry || err != nil {
			t.Errorf("%+v, %v; want %+v", again, err, entry)
		}
	}
	if first, err := s.Ctx.QueryGID(1, 0); err != nil || !first.GID.IsIPv4() {
		t.Errorf("GID index 0 is %v, %v", first, err)
	}
}

// queryExtended checks the attributes that are the same for all devices.
func queryExtended(t *testing.T, w *rig.World) {
	device, err := w.A.Ctx.QueryDevice()
	rig.Check(t, err)
	const abilities = ib.DeviceBadPKeyCntr | ib.DeviceBadQKeyCntr | ib.DeviceCurrQPStateMod | ib.DevicePortActiveEvent | ib.DeviceSysImageGUID
	if device.SysImageGUID != device.NodeGUID || device.AtomicCap != ib.AtomicHCA || device.CapFlags&abilities != abilities || device.VendorID == 0 || device.VendorID == 0xFFFFFF {
		t.Errorf("%+v", device)
	}
	const ofMemory = ib.DeviceMemWindow | ib.DeviceMemWindowType2B | ib.DeviceRCRNRNAKGen
	if device.CapFlags&ofMemory != ofMemory || device.MaxMW == 0 || device.MaxQPRDAtom < 1 || device.MaxQPInitRDAtom < 1 || device.MaxResRDAtom < device.MaxQPRDAtom {
		t.Errorf("%+v", device)
	}
	if device.PageSizeCap&4096 == 0 || device.CompletionTimestampMask == 0 || device.HCACoreClock != 1e6 || device.MaxCQCount == 0 || device.MaxCQPeriod == 0 {
		t.Errorf("%+v", device)
	}
}

// queryPort checks that an active port reports the type and speed of its link, and counts wrong keys.
func queryPort(t *testing.T, w *rig.World) {
	port, err := w.A.Ctx.QueryPort(1)
	rig.Check(t, err)
	if port.PhysState != ib.PhysStateLinkUp || port.LinkLayer != ib.LinkLayerEthernet || port.CapFlags&ib.PortCapIPBasedGIDs == 0 || port.MaxVLNum != 1 {
		t.Errorf("%+v", port)
	}
	if port.ActiveWidth == 0 || port.ActiveSpeed == 0 || port.InterfaceSpeed < 0 {
		t.Errorf("%+v", port)
	}
	if port.LID != 0 || port.SMLID != 0 || port.LMC != 0 || port.SMSL != 0 {
		t.Errorf("attributes of a subnet manager: %+v", port)
	}
	wrong := w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP)
	wrong.RemoteQKey = 3
	before, err := w.B.Ctx.QueryPort(1)
	rig.Check(t, err)
	w.A.Post(wrong)
	w.A.Expect(rig.OK(1))
	w.Settle()
	after, err := w.B.Ctx.QueryPort(1)
	rig.Check(t, err)
	if after.QKeyViolations != before.QKeyViolations+1 || after.PKeyViolations != before.PKeyViolations {
		t.Errorf("violations %d and %d, before %d and %d", after.QKeyViolations, after.PKeyViolations, before.QKeyViolations, before.PKeyViolations)
	}
}

// queryDownPort checks that a port without a link reports this in both of its states, and keeps its tables.
func queryDownPort(t *testing.T, w *rig.World) {
	s := w.A
	before, err := s.Ctx.QueryPort(1)
	rig.Check(t, err)
	s.End.SetLink(false)
	var port verbs.PortAttr
	rig.Eventually(t, "the link to be down", func() bool {
		port, err = s.Ctx.QueryPort(1)
		rig.Check(t, err)
		return port.State == verbs.PortDown
	})
	if port.PhysState != ib.PhysStatePolling && port.PhysState != ib.PhysStateDisabled {
		t.Errorf("physical state %v", port.PhysState)
	}
	if port.GIDTableLen != before.GIDTableLen || port.MaxMTU != before.MaxMTU || port.ActiveWidth == 0 || port.ActiveSpeed == 0 {
		t.Errorf("%+v, before %+v", port, before)
	}
	s.End.SetLink(true)
	rig.Eventually(t, "the link to be up", func() bool {
		port, err = s.Ctx.QueryPort(1)
		rig.Check(t, err)
		return port.State == verbs.PortActive && port.PhysState == ib.PhysStateLinkUp
	})
}

func queryRefuses(t *testing.T, s *rig.Station) {
	t.Helper()
	_, noPort := s.Ctx.QueryPort(2)
	_, noPKey := s.Ctx.QueryPKey(1, 1)
	_, noGID := s.Ctx.QueryGID(1, s.EmptyLine())
	rig.Refused(t, noPort, unix.EINVAL, "port 2")
	rig.Refused(t, noPKey, unix.EINVAL, "index 1")
	rig.Refused(t, noGID, verbs.ErrNoGID, "index ")
	rig.Refused(t, noGID, unix.ENODATA)
	for _, index := range []int{-1, s.GIDTableLen(), 1 << 30} {
		_, err := s.Ctx.QueryGID(1, index)
		rig.Refused(t, err, verbs.ErrInvalid, fmt.Sprint("index ", index))
	}
}
