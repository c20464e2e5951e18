// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

func TestQueryDevice(t *testing.T) {
	s := newStillPair(t).a
	attr, err := s.ctx.QueryDevice()
	check(t, err)
	want := verbs.DeviceAttr{
		Name: "memory-a", FirmwareVersion: attr.FirmwareVersion, NodeGUID: 0x0000_00ff_fe00_0001, MaxQP: 16384, MaxQPWR: 16384,
		MaxSGE: 16, MaxInline: 512, MaxSRQ: 16384, MaxSRQWR: 16384, MaxSRQSGE: 16, MaxCQ: 16384, MaxCQE: 1 << 18, MaxMR: 65536, MaxMRSize: 1 << 38, MaxMW: 65536, MaxFastRegPageListLen: 512, MaxPD: 16384, MaxAH: 1 << 17,
		MaxPKeys: 1, MaxMcastGrp: 16384, MaxMcastQPAttach: 16384, MaxTotalMcastQPAttach: 1 << 18, PhysicalPorts: 1, XDPMode: "none", AFXDPMode: "none", SendMode: "none", Workers: 1,
		SysImageGUID: 0x0000_00ff_fe00_0001, VendorID: 0x726f63, PageSizeCap: 0xfffff000, CapFlags: attr.CapFlags,
		AtomicCap: ib.AtomicHCA, MaxQPRDAtom: 16, MaxQPInitRDAtom: 16, MaxResRDAtom: 16 * 16384,
		CompletionTimestampMask: 1<<64 - 1, HCACoreClock: 1_000_000, MaxCQCount: 65535, MaxCQPeriod: 65535,
	}
	if attr != want || attr.FirmwareVersion == "" {
		t.Errorf("%+v, want %+v", attr, want)
	}
	port, err := s.ctx.QueryPort(1)
	check(t, err)
	if port.State != verbs.PortActive || port.ActiveMTU.Bytes() != 4096 || port.MaxMsgSize != 1<<30 || port.GIDTableLen != 16 || port.PKeyTableLen != 1 || port.InterfaceMTU != 4176 {
		t.Errorf("port %+v", port)
	}
}

// Queue pairs that are refused or closed release their number and their place in the doorbell.
func TestNothingIsLeftOfQPs(t *testing.T) {
	s := newStillPair(t).a
	s.device.session.qps.Limit = 3
	for range 3 {
		one, two := s.newQP(defaultCap()), s.newQP(defaultCap())
		_, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
		refused(t, err, verbs.ErrLimit, "3 QPs")
		if n := s.device.qps.Len(); n != 3 || len(s.device.session.qps.byDoorbell) != 3 {
			t.Errorf("got %d numbers and %d places, want 3", n, len(s.device.session.qps.byDoorbell))
		}
		check(t, errors.Join(one.Close(), two.Close()))
	}
	if n := s.device.qps.Len(); n != 1 || len(s.device.session.qps.byDoorbell) != 1 {
		t.Errorf("%d queue pairs and %d doorbells are left", n, len(s.device.session.qps.byDoorbell))
	}
	if users := s.device.session.pds.All()[0].users; users != 2 {
		t.Errorf("%d users of the PD, want the station's MR and QP", users)
	}
}
