// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var capabilityTests = []rig.Test{
	{Name: "capabilities", Run: capabilities},
	{Name: "capabilities of the device", Run: deviceCapabilities},
}

// capabilityRows lists the capabilities of a port, with their values for RoCE v2.
var capabilityRows = []struct {
	name string
	has  func(c *verbs.Context, port uint8) bool
	want bool
}{
	{"IsPortValid", kernel.IsPortValid, true},
	{"ProtocolRoCE", kernel.ProtocolRoCE, true},
	{"ProtocolRoCEUDPEncap", kernel.ProtocolRoCEUDPEncap, true},
	{"ProtocolIB", kernel.ProtocolIB, false},
	{"ProtocolRoCEEthEncap", kernel.ProtocolRoCEEthEncap, false},
	{"ProtocolIWARP", kernel.ProtocolIWARP, false},
	{"ProtocolUSNIC", kernel.ProtocolUSNIC, false},
	{"ProtocolRawPacket", kernel.ProtocolRawPacket, false},
	{"CapIBMAD", kernel.CapIBMAD, true},
	{"CapOPAMAD", kernel.CapOPAMAD, false},
	{"CapIBSMI", kernel.CapIBSMI, false},
	{"CapIBCM", kernel.CapIBCM, true},
	{"CapIWCM", kernel.CapIWCM, false},
	{"CapIBSA", kernel.CapIBSA, false},
	{"CapIBMcast", kernel.CapIBMcast, false},
	{"CapAFIB", kernel.CapAFIB, true},
	{"CapEthAH", kernel.CapEthAH, true},
	{"CapOPAAH", kernel.CapOPAAH, false},
	{"CapRoCEGIDTable", kernel.CapRoCEGIDTable, true},
}

// The device has the capabilities of one with a port of RoCE v2. Ports that do not exist have no capabilities and
// cannot be queried.
func capabilities(t *testing.T, w *rig.World) {
	c := w.A.Ctx
	device, err := c.QueryDevice()
	rig.Check(t, err)
	if kernel.CapIBSwitch(c) || kernel.StartPort(c) != 1 || int(kernel.EndPort(c)) != device.PhysicalPorts || kernel.MaxMADSize(c, 1) != 256 {
		t.Errorf("switch %v, ports %d to %d of %d, MADs of %d bytes", kernel.CapIBSwitch(c), kernel.StartPort(c), kernel.EndPort(c), device.PhysicalPorts, kernel.MaxMADSize(c, 1))
	}
	for number := range 256 {
		port := uint8(number)
		_, err := c.QueryPort(port)
		exists := port >= kernel.StartPort(c) && port <= kernel.EndPort(c)
		if exists != (err == nil) || !exists && kernel.MaxMADSize(c, port) != 0 {
			t.Errorf("port %d: %v, MADs of %d bytes", port, err, kernel.MaxMADSize(c, port))
		}
		for _, row := range capabilityRows {
			if got := row.has(c, port); got != (row.want && exists) {
				t.Errorf("%s(%d) is %v", row.name, port, got)
			}
		}
	}
}

// deviceCapabilityRows lists capabilities of a device, each with an operation that succeeds only on a device that has
// it.
var deviceCapabilityRows = map[ib.DeviceCapFlags]func(w *rig.World) bool{
	ib.DeviceResizeMaxWR: func(w *rig.World) bool {
		return w.A.QP.Modify(&verbs.QPAttr{Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64}}, verbs.QPAttrCap) == nil
	},
	ib.DeviceAutoPathMig: func(w *rig.World) bool {
		p := w.Connect(verbs.QPTypeRC, nil)
		return p.A.QP.Modify(&verbs.QPAttr{}, verbs.QPAttrAltPath) == nil
	},
	ib.DeviceCurrQPStateMod: func(w *rig.World) bool {
		attr := verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS}
		return w.A.QP.Modify(&attr, verbs.QPAttrState|verbs.QPAttrCurState) == nil
	},
	ib.DeviceSysImageGUID: func(w *rig.World) bool {
		device, err := w.A.Ctx.QueryDevice()
		return err == nil && device.SysImageGUID != 0
	},
	ib.DeviceSRQResize: func(w *rig.World) bool {
		srq, err := w.A.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
		return err == nil && srq.Modify(&verbs.SRQAttr{MaxWR: 16}, verbs.SRQMaxWR) == nil
	},
	ib.DeviceNNotifyCQ: func(w *rig.World) bool {
		return kernel.ReqNcompNotif(w.A.NewCQOn(w.A.NewChannel(), 4), 2) == nil
	},
	ib.DeviceMemWindow:        windowsOf(verbs.MWType1),
	ib.DeviceMemWindowType2B:  windowsOf(verbs.MWType2),
	ib.DeviceXRC:              func(w *rig.World) bool { _, err := w.A.Ctx.AllocXRCD(); return err == nil },
	ib.DeviceMemMgtExtensions: fastRegistrations,
}

func windowsOf(kind verbs.MWType) func(w *rig.World) bool {
	return func(w *rig.World) bool {
		mw, err := w.A.PD.AllocMW(kind)
		return err == nil && mw.Close() == nil
	}
}

// fastRegistrations performs REG_MR, SEND_WITH_INV and LOCAL_INV, which belong to the memory management extensions.
func fastRegistrations(w *rig.World) bool {
	p := w.Connect(verbs.QPTypeRC, nil)
	mr, err := kernel.AllocFastMR(p.B.PD, kernel.MRTypeMemReg, 1)
	if err != nil {
		return false
	}
	list := p.B.Mapped(kernel.DMABidirectional, 0, kernel.MinPageSize)
	if _, _, err := kernel.MapSG(mr, list, 0, kernel.MinPageSize); err != nil {
		return false
	}
	reg := verbs.SendWR{ID: 1, Opcode: verbs.WRRegMR, Reg: &verbs.RegMR{MR: mr, Key: mr.RKey(), Access: fastAccess}}
	inv := p.A.Request(verbs.WRSendWithInv, &p.B, 5)
	inv.InvalidateRKey = mr.RKey()
	p.B.Recv(2, kernel.MinPageSize, 100)
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

// A device reports a capability exactly if its operations work.
func deviceCapabilities(t *testing.T, w *rig.World) {
	device, err := w.A.Ctx.QueryDevice()
	rig.Check(t, err)
	for flag, works := range deviceCapabilityRows {
		if has := device.CapFlags&flag != 0; has != works(w) {
			t.Errorf("%v: the device has the capability: %v; its operation works: %v", flag, has, !has)
		}
	}
}
