// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var postTests = []rig.Test{
	{Name: "post send refuses", Run: postSendRefuses},
	{Name: "operations that are not built", Run: postUnsupported},
	{Name: "post receive refuses", Run: postRecvRefuses},
}

// postSendRefuses checks the errors of invalid requests. The requests before the invalid one of a list are posted, the
// later ones are not.
func postSendRefuses(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	otherPD, err := a.Ctx.AllocPD()
	rig.Check(t, err)
	foreign, err := otherPD.CreateAH(rig.Guard(t), a.Route(b.End.IPv4))
	rig.Check(t, err)
	rows := []struct {
		name  string
		spoil func(wr *verbs.SendWR)
		want  error
		says  string
	}{
		{"no AH", func(wr *verbs.SendWR) { wr.AH = nil }, unix.EINVAL, "address handle"},
		{"AH of another PD", func(wr *verbs.SendWR) { wr.AH = foreign }, unix.EINVAL, "another PD"},
		{"QP 0", func(wr *verbs.SendWR) { wr.RemoteQPN = 0 }, unix.EINVAL, "number 0"},
		{"QP of 25 bits", func(wr *verbs.SendWR) { wr.RemoteQPN = 1 << 24 }, unix.EINVAL, "16777216"},
		{"RDMA write", func(wr *verbs.SendWR) { wr.Opcode = verbs.WRRDMAWriteWithImm }, unix.EINVAL, "RDMA write"},
		{"no operation, which is libibverbs' RDMA write", func(wr *verbs.SendWR) { wr.Opcode = 0 }, unix.EINVAL, "set Opcode to WRSend"},
		{"unknown flag", func(wr *verbs.SendWR) { wr.Flags |= 1 << 6 }, unix.EINVAL, "send flags 0x40"},
		{"too many SGEs", func(wr *verbs.SendWR) { wr.SGList = make([]verbs.SGE, 17) }, unix.EINVAL, "max_send_sge"},
		{"inline too long", func(wr *verbs.SendWR) { wr.Flags, wr.InlineData = verbs.SendInline, make([]byte, 1025) }, unix.EINVAL, "max_inline_data"},
		{"inline of no region", func(wr *verbs.SendWR) { wr.Flags, wr.SGList[0].LKey = verbs.SendInline, 0x1234 }, unix.EINVAL, "lkey 0x1234"},
		{"inline beyond the region", func(wr *verbs.SendWR) {
			wr.Flags, wr.SGList = verbs.SendInline, []verbs.SGE{a.MR.SGE(rig.Slots*rig.SlotLen-1, 2)}
		}, unix.EINVAL, "exceeds"},
		{"inline from a wrapping address", func(wr *verbs.SendWR) {
			wr.Flags, wr.SGList = verbs.SendInline, []verbs.SGE{{Addr: 1<<64 - 1, Length: 2, LKey: a.MR.LKey()}}
		}, unix.EINVAL, "exceeds"},
		{"inline data without the flag", func(wr *verbs.SendWR) { wr.InlineData = []byte("x") }, unix.EINVAL, "SendInline"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			list := make([]verbs.SendWR, 4)
			for i := range list {
				list[i] = a.Send(uint64(i), ah, b.QP, a.Piece(i, 10))
			}
			row.spoil(&list[2])
			b.Receive(0, 1, 2, 3)
			err := a.QP.PostSend(list)
			rig.Refused(t, err, row.want, "work request 2", row.says)
			var bad *verbs.BadWRError
			if !errors.As(err, &bad) || bad.Index != 2 {
				t.Errorf("%v does not name request 2", err)
			}
			a.Expect(rig.OK(0), rig.OK(1))
			b.Expect(rig.OK(0), rig.OK(1))
			w.NothingElse()
			rig.To(t, b.QP, verbs.QPStateReset)
			rig.Check(t, b.QP.Activate(rig.TestQKey))
		})
	}
}

// postUnsupported checks that unimplemented operations of libibverbs return EOPNOTSUPP, and unknown opcodes EINVAL.
func postUnsupported(t *testing.T, w *rig.World) {
	connected := w.Connect(verbs.QPTypeRC, nil)
	for _, qp := range []*verbs.QP{w.A.QP, connected.A.QP} {
		for _, op := range []verbs.Opcode{verbs.WRTSO, verbs.WRDriver1, verbs.WRFlush, verbs.WRAtomicWrite} {
			rig.Refused(t, qp.PostSend([]verbs.SendWR{{Opcode: op}}), unix.EOPNOTSUPP, op.String())
		}
		rig.Refused(t, qp.PostSend([]verbs.SendWR{{Opcode: 12}}), unix.EINVAL, "(12) is not an operation")
	}
}

func postRecvRefuses(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	good := verbs.RecvWR{SGList: []verbs.SGE{b.Piece(0, rig.SlotLen)}}
	bad := verbs.RecvWR{SGList: make([]verbs.SGE, 17)}
	err := b.QP.PostRecv([]verbs.RecvWR{good, good, bad, good})
	rig.Refused(t, err, unix.EINVAL, "work request 2", "max_recv_sge")
	ah := a.AH(b.End.IPv4)
	for i := range 4 {
		a.Post(a.Send(uint64(i), ah, b.QP))
	}
	a.Wait(4)
	b.Wait(2)
	w.NothingElse()
	b.ExpectDrops(map[string]uint64{"no_receive": 2})
}
