package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var capabilityTests = []rig.Test{
	{Name: "capabilities", Run: capabilities},
	{Name: "capabilities of the device", Run: deviceCapabilities},
}

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

// deviceCapabilityRows are the capabilities of a device with an operation that succeeds only on a device that has them.
var deviceCapabilityRows = map[verbs.DeviceCapFlags]func(w *rig.World) bool{
	verbs.DeviceResizeMaxWR: func(w *rig.World) bool {
		return w.A.QP.Modify(&verbs.QPAttr{Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64}}, verbs.QPAttrCap) == nil
	},
	verbs.DeviceAutoPathMig: func(w *rig.World) bool {
		p := w.Connect(verbs.QPTypeRC, nil)
		return p.A.QP.Modify(&verbs.QPAttr{}, verbs.QPAttrAltPath) == nil
	},
	verbs.DeviceCurrQPStateMod: func(w *rig.World) bool {
		attr := verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS}
		return w.A.QP.Modify(&attr, verbs.QPAttrState|verbs.QPAttrCurState) == nil
	},
	verbs.DeviceSysImageGUID: func(w *rig.World) bool {
		device, err := w.A.Ctx.QueryDevice()
		return err == nil && device.SysImageGUID != 0
	},
	verbs.DeviceSRQResize: func(w *rig.World) bool {
		srq, err := w.A.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
		return err == nil && srq.Modify(&verbs.SRQAttr{MaxWR: 16}, verbs.SRQMaxWR) == nil
	},
	verbs.DeviceNNotifyCQ: func(w *rig.World) bool {
		return w.A.NewCQOn(w.A.NewChannel(), 4).ReqNcompNotif(2) == nil
	},
	verbs.DeviceMemWindow:        windowsOf(verbs.MWType1),
	verbs.DeviceMemWindowType2B:  windowsOf(verbs.MWType2),
	verbs.DeviceXRC:              func(w *rig.World) bool { _, err := w.A.Ctx.AllocXRCD(); return err == nil },
	verbs.DeviceMemMgtExtensions: fastRegistrations,
}

func windowsOf(kind verbs.MWType) func(w *rig.World) bool {
	return func(w *rig.World) bool {
		mw, err := w.A.PD.AllocMW(kind)
		return err == nil && mw.Close() == nil
	}
}

// fastRegistrations are REG_MR, SEND_WITH_INV and LOCAL_INV, which belong to the memory management extensions.
func fastRegistrations(w *rig.World) bool {
	p := w.Connect(verbs.QPTypeRC, nil)
	mr, err := p.B.PD.AllocFastMR(verbs.MRTypeMemReg, 1)
	if err != nil {
		return false
	}
	list := p.B.Mapped(verbs.DMABidirectional, 0, verbs.MinPageSize)
	if _, _, err := mr.MapSG(list, 0, verbs.MinPageSize); err != nil {
		return false
	}
	reg := verbs.SendWR{ID: 1, Opcode: verbs.WRRegMR, Reg: &verbs.RegMR{MR: mr, Key: mr.RKey(), Access: fastAccess}}
	inv := p.A.Request(verbs.WRSendWithInv, &p.B, 5)
	inv.InvalidateRKey = mr.RKey()
	p.B.Recv(2, verbs.MinPageSize, 100)
	for _, step := range []struct {
		by *rig.Peer
		wr verbs.SendWR
	}{
		{&p.B, reg}, {&p.A, inv}, {&p.B, reg}, {&p.B, verbs.SendWR{ID: 1, Opcode: verbs.WRLocalInv, InvalidateRKey: mr.RKey()}},
	} {
		step.by.Post(step.wr)
		if wc := step.by.Wait(1)[0]; wc.Status != verbs.WCSuccess {
			return false
		}
		if step.wr.Opcode == verbs.WRSendWithInv {
			p.B.Expect(rig.OK(2))
		}
	}
	return true
}

// A device has a capability exactly if what belongs to it works.
func deviceCapabilities(t *testing.T, w *rig.World) {
	device, err := w.A.Ctx.QueryDevice()
	rig.Check(t, err)
	for flag, works := range deviceCapabilityRows {
		if has := device.CapFlags&flag != 0; has != works(w) {
			t.Errorf("%v: the device has the capability: %v; what belongs to it works: %v", flag, has, !has)
		}
	}
}
