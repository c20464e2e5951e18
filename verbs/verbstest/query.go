package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var queryTests = []test{{name: "query device", run: queryDevice}}

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
	if port.State != verbs.PortActive || mtu < 256 || port.ActiveMTU > port.MaxMTU || int(port.MaxMsgSize) != mtu || port.PKeyTableLen != 1 || port.InterfaceMTU < mtu {
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
	gids, err := s.ctx.GIDs(1)
	check(t, err)
	if len(gids) < 3 || len(gids) > port.GIDTableLen {
		t.Errorf("%d lines of %d are in use", len(gids), port.GIDTableLen)
	}
	for _, own := range s.end.addresses() {
		entry, err := s.ctx.QueryGID(1, s.line(own))
		check(t, err)
		if entry.GID != gid(own) {
			t.Errorf("%+v, want %v", entry, own)
		}
	}
	if first, err := s.ctx.QueryGID(1, 0); err != nil || !first.GID.IsIPv4() {
		t.Errorf("line 0 is %v, %v", first, err)
	}
}

func queryRefuses(t *testing.T, s *station) {
	t.Helper()
	_, noPort := s.ctx.QueryPort(2)
	_, noPKey := s.ctx.QueryPKey(1, 1)
	_, noGID := s.ctx.QueryGID(1, s.emptyLine())
	_, negative := s.ctx.QueryGID(1, -1)
	refused(t, noPort, unix.EINVAL, "port 2")
	refused(t, noPKey, unix.EINVAL, "index 1")
	refused(t, noGID, unix.EADDRNOTAVAIL, "index ")
	refused(t, negative, unix.EADDRNOTAVAIL)
}

// emptyLine is a line of the GID table that is not in use.
func (s *station) emptyLine() int {
	s.Helper()
	gids, err := s.ctx.GIDs(1)
	check(s, err)
	return gids[len(gids)-1].Index + 1
}
