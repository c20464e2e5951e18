// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var headerTests = []rig.Test{
	{Name: "headers of received packets", Run: headers},
	{Name: "attributes of an answer", Run: answerAttributes},
}

// A response has the message's traffic class except ECN, its flow label and service level, and the kernel's hop limit.
// The completion's header type takes precedence over the header.
func answerAttributes(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	route := a.Route(b.End.IPv6)
	route.GRH.TrafficClass, route.GRH.HopLimit = 0x2E<<2|1, 9
	ah, err := a.PD.CreateAH(rig.Guard(t), route)
	rig.Check(t, err)
	b.Receive(0)
	a.Post(a.Send(1, ah, b.QP))
	a.Expect(rig.OK(1))
	wc := b.Expect(rig.OK(0))[0]
	grh, _ := b.Received(wc)
	attr, err := b.Ctx.InitAHFromWC(&wc, grh, 1)
	rig.Check(t, err)
	want := verbs.GlobalRoute{
		DGID: rig.GID(a.End.IPv6), SGIDIndex: b.Line(b.End.IPv6), HopLimit: 64, TrafficClass: 0x2E << 2, FlowLabel: grh.FlowLabel(),
	}
	if attr.GRH != want || attr.SL != wc.SL || attr.Port != 1 {
		t.Errorf("%+v, want %+v", attr, want)
	}
	wc.NetworkHeader = 9
	_, err = b.Ctx.InitAHFromWC(&wc, grh, 1)
	rig.Refused(t, err, unix.EINVAL, "network type 9")
	wc.Flags &^= verbs.WCWithNetworkHdrType
	if again, err := b.Ctx.InitAHFromWC(&wc, grh, 1); err != nil || again != attr {
		t.Errorf("by the header alone %+v, %v", again, err)
	}
}

// The 40 bytes before a message contain the IP version and the GIDs, over IPv4 and IPv6; the functions return the same
// values as the GRH's methods.
func headers(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	for i, from := range a.End.Addresses() {
		dest := b.End.Addresses()[i]
		b.Receive(0)
		a.Post(a.Send(1, a.AH(dest), b.QP))
		a.Expect(rig.OK(1))
		wc := b.Expect(rig.OK(0))[0]
		grh, _ := b.Received(wc)
		version := 6
		if dest.Is4() {
			version = 4
		}
		if got := kernel.GetRDMAHeaderVersion(grh); got != version {
			t.Errorf("to %v: version %d", dest, got)
		}
		sgid, dgid, err := kernel.GetGIDsFromRDMAHdr(grh, wc.NetworkHeader)
		rig.Check(t, err)
		if sgid != rig.GID(from) || dgid != rig.GID(dest) {
			t.Errorf("from %v to %v, want %v and %v", sgid, dgid, from, dest)
		}
		for _, network := range []verbs.NetworkType{verbs.NetworkIB, verbs.NetworkRoCEv1} { // the layout is that of IPv6
			sgid, dgid, err := kernel.GetGIDsFromRDMAHdr(grh, network)
			rig.Check(t, err)
			if version == 6 && (sgid != rig.GID(from) || dgid != rig.GID(dest)) {
				t.Errorf("network type %d: from %v to %v", network, sgid, dgid)
			}
		}
		for name, refuse := range map[string]func() error{
			"no bytes":    func() error { _, _, err := kernel.GetGIDsFromRDMAHdr(nil, wc.NetworkHeader); return err },
			"39 bytes":    func() error { _, _, err := kernel.GetGIDsFromRDMAHdr(grh[:39], wc.NetworkHeader); return err },
			"type 4":      func() error { _, _, err := kernel.GetGIDsFromRDMAHdr(grh, 4); return err },
			"no such one": func() error { _, _, err := kernel.GetGIDsFromRDMAHdr(grh, 255); return err },
		} {
			t.Run(name, func(t *testing.T) { rig.Refused(t, refuse(), unix.EINVAL) })
		}
	}
}
