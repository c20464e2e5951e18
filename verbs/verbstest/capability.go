package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var capabilityTests = []rig.Test{{Name: "capabilities", Run: capabilities}}

// capabilityRows are what a port can be asked, and what one of RoCE v2 answers.
var capabilityRows = []struct {
	name string
	has  func(c *verbs.Context, port uint8) bool
	want bool
}{
	{"IsPortValid", (*verbs.Context).IsPortValid, true},
	{"ProtocolRoCE", (*verbs.Context).ProtocolRoCE, true},
	{"ProtocolRoCEUDPEncap", (*verbs.Context).ProtocolRoCEUDPEncap, true},
	{"ProtocolIB", (*verbs.Context).ProtocolIB, false},
	{"ProtocolRoCEEthEncap", (*verbs.Context).ProtocolRoCEEthEncap, false},
	{"ProtocolIWARP", (*verbs.Context).ProtocolIWARP, false},
	{"ProtocolUSNIC", (*verbs.Context).ProtocolUSNIC, false},
	{"ProtocolRawPacket", (*verbs.Context).ProtocolRawPacket, false},
	{"CapIBMAD", (*verbs.Context).CapIBMAD, true},
	{"CapOPAMAD", (*verbs.Context).CapOPAMAD, false},
	{"CapIBSMI", (*verbs.Context).CapIBSMI, false},
	{"CapIBCM", (*verbs.Context).CapIBCM, true},
	{"CapIWCM", (*verbs.Context).CapIWCM, false},
	{"CapIBSA", (*verbs.Context).CapIBSA, false},
	{"CapIBMcast", (*verbs.Context).CapIBMcast, false},
	{"CapAFIB", (*verbs.Context).CapAFIB, true},
	{"CapEthAH", (*verbs.Context).CapEthAH, true},
	{"CapOPAAH", (*verbs.Context).CapOPAAH, false},
	{"CapRoCEGIDTable", (*verbs.Context).CapRoCEGIDTable, true},
}

// The device answers as one with a port of RoCE v2. Ports that do not exist have no capability, and
// cannot be queried.
func capabilities(t *testing.T, w *rig.World) {
	c := w.A.Ctx
	device, err := c.QueryDevice()
	rig.Check(t, err)
	if c.CapIBSwitch() || c.StartPort() != 1 || int(c.EndPort()) != device.PhysicalPorts || c.MaxMADSize(1) != 256 {
		t.Errorf("switch %v, ports %d to %d of %d, MADs of %d bytes", c.CapIBSwitch(), c.StartPort(), c.EndPort(), device.PhysicalPorts, c.MaxMADSize(1))
	}
	for number := range 256 {
		port := uint8(number)
		_, err := c.QueryPort(port)
		exists := port >= c.StartPort() && port <= c.EndPort()
		if exists != (err == nil) || !exists && c.MaxMADSize(port) != 0 {
			t.Errorf("port %d: %v, MADs of %d bytes", port, err, c.MaxMADSize(port))
		}
		for _, row := range capabilityRows {
			if got := row.has(c, port); got != (row.want && exists) {
				t.Errorf("%s(%d) is %v", row.name, port, got)
			}
		}
	}
}
