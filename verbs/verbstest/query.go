package verbstest

import (
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var queryTests = []test{
	{name: "query device", run: queryDevice},
	{name: "query device: extended attributes", run: queryExtended},
	{name: "query port: all attributes", run: queryPort},
	{name: "query port while the link is down", run: queryDownPort, needs: func(p *Pair) bool { return p.A.SetLink != nil }},
}

// The attributes of device and port can be used, and queries of what does not exist are refused.
func queryDevice(t *testing.T, w *world) {
	s := w.a
	device, err := s.ctx.QueryDevice()
	check(t, err)
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
	port, err := s.ctx.QueryPort(1)
	check(t, err)
	mtu := port.ActiveMTU.Bytes()
	if port.State != verbs.PortActive || mtu < 256 || port.ActiveMTU > port.MaxMTU || int(port.MaxMsgSize) < mtu || port.PKeyTableLen != 1 || port.InterfaceMTU < mtu {
		t.Errorf("port %+v", port)
	}
	if key, err := s.ctx.QueryPKey(1, 0); key != 0xFFFF || err != nil {
		t.Errorf("P_Key %v, %v", key, err)
	}
	queryGIDs(t, s, port)
	queryRefuses(t, s)
}

// queryGIDs checks that each address has a line, and that line 0 is the IPv4 one's.
func queryGIDs(t *testing.T, s *station, port verbs.PortAttr) {
	t.Helper()
	gids, err := s.ctx.QueryGIDTable(1)
	check(t, err)
	if len(gids) < 3 || len(gids) > port.GIDTableLen {
		t.Errorf("%d lines of %d are in use", len(gids), port.GIDTableLen)
	}
	for _, entry := range gids {
		if entry.Type != verbs.GIDTypeRoCEv2 || entry.Port != 1 || entry.Index >= port.GIDTableLen || entry.Interface == "" || entry.IfIndex != gids[0].IfIndex {
			t.Errorf("%+v", entry)
		}
	}
	for _, own := range s.end.addresses() {
		entry, err := s.ctx.QueryGIDEx(1, s.line(own))
		check(t, err)
		if entry.GID != gid(own) {
			t.Errorf("%+v, want %v", entry, own)
		}
		if plain, err := s.ctx.QueryGID(1, entry.Index); plain != entry.GID || err != nil {
			t.Errorf("%v, %v; want %v", plain, err, entry.GID)
		}
	}
	if first, err := s.ctx.QueryGIDEx(1, 0); err != nil || !first.GID.IsIPv4() {
		t.Errorf("line 0 is %v, %v", first, err)
	}
}

// What is fixed for every device is what it says: atomics of its own, no vendor, timestamps in ns.
func queryExtended(t *testing.T, w *world) {
	device, err := w.a.ctx.QueryDevice()
	check(t, err)
	const abilities = verbs.DeviceBadPKeyCntr | verbs.DeviceBadQKeyCntr | verbs.DeviceCurrQPStateMod | verbs.DevicePortActiveEvent | verbs.DeviceSysImageGUID
	if device.SysImageGUID != device.NodeGUID || device.AtomicCap != verbs.AtomicHCA || device.CapFlags&abilities != abilities || device.VendorID != 0xFFFFFF {
		t.Errorf("%+v", device)
	}
	const ofMemory = verbs.DeviceMemWindow | verbs.DeviceMemWindowType2B | verbs.DeviceRCRNRNAKGen
	if device.CapFlags&ofMemory != ofMemory || device.MaxMW == 0 || device.MaxQPRDAtom < 1 || device.MaxQPInitRDAtom < 1 || device.MaxResRDAtom < device.MaxQPRDAtom {
		t.Errorf("%+v", device)
	}
	if device.PageSizeCap&4096 == 0 || device.CompletionTimestampMask == 0 || device.HCACoreClock != 1e6 || device.MaxCQCount == 0 || device.MaxCQPeriod == 0 {
		t.Errorf("%+v", device)
	}
}

// A port that is up tells the kind and the speed of its link, and counts keys that do not match.
func queryPort(t *testing.T, w *world) {
	port, err := w.a.ctx.QueryPort(1)
	check(t, err)
	if port.PhysState != verbs.PhysStateLinkUp || port.LinkLayer != verbs.LinkLayerEthernet || port.CapFlags&verbs.PortCapIPBasedGIDs == 0 || port.MaxVLNum != 1 {
		t.Errorf("%+v", port)
	}
	if port.ActiveWidth == 0 || port.ActiveSpeed == 0 || port.InterfaceSpeed < 0 {
		t.Errorf("%+v", port)
	}
	if port.LID != 0 || port.SMLID != 0 || port.LMC != 0 || port.SMSL != 0 {
		t.Errorf("a subnet manager's: %+v", port)
	}
	wrong := w.a.send(1, w.a.ah(w.b.end.IPv4), w.b.qp)
	wrong.RemoteQKey = 3
	before, err := w.b.ctx.QueryPort(1)
	check(t, err)
	w.a.post(wrong)
	w.a.expect(ok(1))
	w.settle()
	after, err := w.b.ctx.QueryPort(1)
	check(t, err)
	if after.QKeyViolations != before.QKeyViolations+1 || after.PKeyViolations != before.PKeyViolations {
		t.Errorf("violations %d and %d, before %d and %d", after.QKeyViolations, after.PKeyViolations, before.QKeyViolations, before.PKeyViolations)
	}
}

// A port whose link is down says so in both of its states, and keeps its tables.
func queryDownPort(t *testing.T, w *world) {
	s := w.a
	before, err := s.ctx.QueryPort(1)
	check(t, err)
	s.end.SetLink(false)
	var port verbs.PortAttr
	eventually(t, "the link to be down", func() bool {
		port, err = s.ctx.QueryPort(1)
		check(t, err)
		return port.State == verbs.PortDown
	})
	if port.PhysState != verbs.PhysStatePolling && port.PhysState != verbs.PhysStateDisabled {
		t.Errorf("physical state %v", port.PhysState)
	}
	if port.GIDTableLen != before.GIDTableLen || port.MaxMTU != before.MaxMTU || port.ActiveWidth == 0 || port.ActiveSpeed == 0 {
		t.Errorf("%+v, before %+v", port, before)
	}
	s.end.SetLink(true)
	eventually(t, "the link to be up", func() bool {
		port, err = s.ctx.QueryPort(1)
		check(t, err)
		return port.State == verbs.PortActive && port.PhysState == verbs.PhysStateLinkUp
	})
}

func queryRefuses(t *testing.T, s *station) {
	t.Helper()
	_, noPort := s.ctx.QueryPort(2)
	_, noPKey := s.ctx.QueryPKey(1, 1)
	_, noGID := s.ctx.QueryGIDEx(1, s.emptyLine())
	refused(t, noPort, unix.EINVAL, "port 2")
	refused(t, noPKey, unix.EINVAL, "index 1")
	refused(t, noGID, verbs.ErrNoGID, "index ")
	refused(t, noGID, unix.ENODATA)
	for _, index := range []int{-1, s.gidTableLen(), 1 << 30} {
		_, err := s.ctx.QueryGID(1, index)
		refused(t, err, verbs.ErrInvalid, fmt.Sprint("index ", index))
	}
}

func (s *station) gidTableLen() int {
	s.Helper()
	port, err := s.ctx.QueryPort(1)
	check(s, err)
	return port.GIDTableLen
}

// emptyLine is a line of the GID table that is not in use.
func (s *station) emptyLine() int {
	s.Helper()
	gids, err := s.ctx.QueryGIDTable(1)
	check(s, err)
	return gids[len(gids)-1].Index + 1
}
