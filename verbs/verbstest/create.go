// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var createTests = []rig.Test{
	{Name: "create refuses", Run: createRefuses},
	{Name: "create reports the granted capacities", Run: createGrants},
	{Name: "create accepts the granted capacities", Run: createAgain},
}

// CreateQP and CreateSRQ set the capacities in their argument to the granted capacities, which Query returns too.
func createGrants(t *testing.T, w *rig.World) {
	init := verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: w.A.CQ, RecvCQ: w.A.CQ, Cap: verbs.QPCap{MaxSendWR: 3, MaxRecvWR: 5}}
	qp, err := w.A.PD.CreateQP(&init)
	rig.Check(t, err)
	attr, granted, err := qp.Query()
	rig.Check(t, err)
	if init.Cap != granted.Cap || init.Cap != attr.Cap || init.Cap.MaxSendWR < 3 || init.Cap.MaxRecvWR < 5 || init.Cap.MaxSendSGE < 1 {
		t.Errorf("got %+v, Query returned %+v", init.Cap, granted.Cap)
	}
	rig.ToInit(t, qp)
	for i := range init.Cap.MaxRecvWR {
		w.A.ReceiveOn(qp, int(i)%rig.Slots)
	}
	was := init
	init.SendCQ = nil
	_, err = w.A.PD.CreateQP(&init)
	rig.Refused(t, err, unix.EINVAL)
	if init.Cap != was.Cap {
		t.Error("a failed call changed the attributes")
	}
}

// Granted capacities can be requested: libfabric requests the largest inline size that CreateQP has granted before.
func createAgain(t *testing.T, w *rig.World) {
	device, err := w.A.Ctx.QueryDevice()
	rig.Check(t, err)
	for _, kind := range []verbs.QPType{verbs.QPTypeUD, verbs.QPTypeRC} {
		init := verbs.QPInitAttr{Type: kind, SendCQ: w.A.CQ, RecvCQ: w.A.CQ, Cap: verbs.QPCap{
			MaxSendWR: 3, MaxRecvWR: 5, MaxSendSGE: uint32(device.MaxSGE), MaxRecvSGE: uint32(device.MaxSGE), MaxInlineData: uint32(device.MaxInline),
		}}
		for range 2 {
			_, err := w.A.PD.CreateQP(&init)
			rig.Check(t, err)
		}
		if init.Cap.MaxSendSGE > uint32(device.MaxSGE) || init.Cap.MaxInlineData > uint32(device.MaxInline) {
			t.Errorf("%v: %+v granted; the device has %d SGEs and %d bytes inline", kind, init.Cap, device.MaxSGE, device.MaxInline)
		}
	}
}

// refusal is an error with the expected errno and text.
type refusal struct {
	name string
	err  error
	want error
	says string
}

func refusals(t *testing.T, rows []refusal) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { rig.Refused(t, row.err, row.want, row.says) })
	}
}

// Invalid arguments are rejected with an error that states the valid values.
func createRefuses(t *testing.T, w *rig.World) {
	device, err := w.A.Ctx.QueryDevice()
	rig.Check(t, err)
	pd, err := w.A.Ctx.AllocPD()
	rig.Check(t, err)
	refusals(t, smallRefusals(w, pd, device))
	refusals(t, qpRefusals(w, pd, device))
	rig.Check(t, pd.Close()) // objects that were not created do not use the PD
}

// smallRefusals returns the refusals of contexts, CQs and MRs.
func smallRefusals(w *rig.World, pd *verbs.PD, device verbs.DeviceAttr) []refusal {
	mr := func(length int, access verbs.AccessFlags) error {
		_, err := pd.AllocMR(length, access)
		return err
	}
	cq := func(entries int) error {
		_, err := w.A.Ctx.CreateCQ(entries)
		return err
	}
	_, noCard := verbs.Open(nil)
	return []refusal{
		{"no card", noCard, unix.EINVAL, "no card"},
		{"CQ of 0", cq(0), unix.EINVAL, "1 to"},
		{"CQ of a negative size", cq(-1), unix.EINVAL, "1 to"},
		{"CQ too large", cq(device.MaxCQE + 1), unix.EINVAL, fmt.Sprint(device.MaxCQE)},
		{"MR of a negative length", mr(-1, 0), unix.EINVAL, "at most"},
		{"MR too large", mr(1<<30+1, 0), unix.EINVAL, "at most 1073741824 bytes"},
		{"flush", mr(1, verbs.AccessLocalWrite|verbs.AccessFlushGlobal), unix.EOPNOTSUPP, "access flags 0x100"},
	}
}

// qpRefusals returns the refusals of queue pairs.
func qpRefusals(w *rig.World, pd *verbs.PD, device verbs.DeviceAttr) []refusal {
	s := w.A
	qp := func(change func(a *verbs.QPInitAttr)) error {
		attr := verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.CQ, RecvCQ: s.CQ}
		change(&attr)
		_, err := pd.CreateQP(&attr)
		return err
	}
	wr, sge, inline := uint32(device.MaxQPWR), uint32(device.MaxSGE), uint32(device.MaxInline)
	most := func(name string, limit uint32) string {
		return fmt.Sprintf("%s %d, at most %d", name, limit+1, limit)
	}
	return []refusal{
		{"no CQ", qp(func(a *verbs.QPInitAttr) { a.RecvCQ = nil }), unix.EINVAL, "RecvCQ"},
		{"CQ of another device", qp(func(a *verbs.QPInitAttr) { a.SendCQ = w.B.CQ }), unix.EINVAL, "another context"},
		{"raw packets", qp(func(a *verbs.QPInitAttr) { a.Type = verbs.QPTypeRawPacket }), unix.EOPNOTSUPP, "and GSI (1)"},
		{"an XRC target", qp(func(a *verbs.QPInitAttr) { a.Type = verbs.QPTypeXRCRecv }), unix.EINVAL, "XRC domain"},
		{"too many sends", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxSendWR = wr + 1 }), unix.EINVAL, most("max_send_wr", wr)},
		{"too many receives", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxRecvWR = 1<<32 - 1 }), unix.EINVAL, "max_recv_wr"},
		{"too many SGEs", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxSendSGE = sge + 1 }), unix.EINVAL, most("max_send_sge", sge)},
		{"too many receive SGEs", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxRecvSGE = sge + 1 }), unix.EINVAL, "max_recv_sge"},
		{"too much inline", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxInlineData = inline + 1 }), unix.EINVAL, most("max_inline_data", inline)},
	}
}
