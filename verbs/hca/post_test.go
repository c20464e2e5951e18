package hca

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// What is refused at once, and with which errno. What precedes the bad request of a
// list is queued, what follows is not.
func TestPostSendRefuses(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	otherPD, err := a.ctx.AllocPD()
	check(t, err)
	foreign, err := otherPD.CreateAH(context.Background(), a.route("10.0.0.2"))
	check(t, err)
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
		{"RDMA write", func(wr *verbs.SendWR) { wr.Opcode = 1 }, unix.EINVAL, "RDMA write"},
		{"no operation, which is libibverbs' RDMA write", func(wr *verbs.SendWR) { wr.Opcode = 0 }, unix.EINVAL, "set Opcode to WRSend"},
		{"too many SGEs", func(wr *verbs.SendWR) { wr.SGList = make([]verbs.SGE, 17) }, unix.EINVAL, "max_send_sge"},
		{"inline too long", func(wr *verbs.SendWR) { wr.Flags, wr.InlineData = verbs.SendInline, make([]byte, 1025) }, unix.EINVAL, "max_inline_data"},
		{"inline of no region", func(wr *verbs.SendWR) { wr.Flags, wr.SGList[0].LKey = verbs.SendInline, 0x1234 }, unix.EINVAL, "lkey 0x1234"},
		{"inline beyond the region", func(wr *verbs.SendWR) {
			wr.Flags, wr.SGList = verbs.SendInline, []verbs.SGE{a.mr.SGE(64*slotLen-1, 2)}
		}, unix.EINVAL, "exceeds"},
		{"inline from a wrapping address", func(wr *verbs.SendWR) {
			wr.Flags, wr.SGList = verbs.SendInline, []verbs.SGE{{Addr: 1<<64 - 1, Length: 2, LKey: a.mr.LKey()}}
		}, unix.EINVAL, "exceeds"},
		{"inline data without the flag", func(wr *verbs.SendWR) { wr.InlineData = []byte("x") }, unix.EINVAL, "SendInline"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			list := make([]verbs.SendWR, 4)
			for i := range list {
				list[i] = a.send(uint64(i), ah, b, a.piece(i, 10))
			}
			row.spoil(&list[2])
			err := a.qp.PostSend(list)
			refused(t, err, row.want, "work request 2", row.says)
			var bad *verbs.BadWRError
			if !errors.As(err, &bad) || bad.Index != 2 {
				t.Errorf("%v does not name request 2", err)
			}
			b.receive(0, 1, 2, 3)
			w.run()
			expect(t, a.completions(), ok(0), ok(1))
			expect(t, b.completions(), ok(0), ok(1))
			check(t, b.qp.Modify(&verbs.QPAttr{State: verbs.QPStateReset}, verbs.QPAttrState))
			check(t, b.qp.Activate(testQKey))
		})
	}
}

func TestPostRecvRefuses(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	good := verbs.RecvWR{SGList: []verbs.SGE{b.piece(0, slotLen)}}
	bad := verbs.RecvWR{SGList: make([]verbs.SGE, 17)}
	err := b.qp.PostRecv([]verbs.RecvWR{good, good, bad, good})
	refused(t, err, unix.EINVAL, "work request 2", "max_recv_sge")
	ah := a.ah("10.0.0.2")
	for i := range 4 {
		a.post(a.send(uint64(i), ah, b))
	}
	w.run()
	if got := b.completions(); len(got) != 2 || b.drops()["no_receive"] != 2 {
		t.Errorf("%d of two good receives, drops %v", len(got), b.drops())
	}
}

// Whatever the pieces, what was sent is what arrives, behind the GRH.
func TestSGELists(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("fd00::2")
	for i := range a.mr.Bytes() {
		a.mr.Bytes()[i] = byte(random.Uint32())
	}
	for range 500 {
		var want []byte
		sges := cut(random, a, random.IntN(1025))
		for _, sge := range sges {
			want = append(want, a.mr.Bytes()[sge.Addr:][:sge.Length]...)
		}
		clear(b.mr.Bytes())
		into := cut(random, b, 40+len(want)+random.IntN(64))
		check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 9, SGList: into}}))
		a.post(a.send(8, ah, b, sges...))
		w.run()
		expect(t, a.completions(), ok(8))
		got := b.completions()
		expect(t, got, ok(9))
		var buffer []byte
		for _, sge := range into {
			buffer = append(buffer, b.mr.Bytes()[sge.Addr:][:sge.Length]...)
		}
		grh, payload := got[0].Payload(buffer)
		if !bytes.Equal(payload, want) || grh.SGID() != gid("fd00::1") || grh.DGID() != gid("fd00::2") {
			t.Fatalf("%d bytes from %v into %v: got %d bytes, from %v to %v", len(want), sges, into, len(payload), grh.SGID(), grh.DGID())
		}
		if left := buffer[got[0].ByteLen:]; slices.ContainsFunc(left, func(b byte) bool { return b != 0 }) {
			t.Fatal("memory behind the message was written to")
		}
	}
}

// cut lays a length out over up to four pieces, each in a slot of its own.
func cut(random *rand.Rand, s *station, length int) (sges []verbs.SGE) {
	first := random.IntN(16)
	for i := range 4 {
		n := length
		if i < 3 {
			n = random.IntN(length + 1)
		}
		if n > 0 || random.IntN(4) == 0 {
			sges = append(sges, s.mr.SGE((first+i)*slotLen+random.IntN(100), n))
		}
		length -= n
	}
	return sges
}

// Inline data is copied: its memory can be used again at once.
func TestInline(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	own := []byte("a buffer of the program's own")
	first := a.send(1, ah, b)
	first.Flags |= verbs.SendInline
	first.InlineData = own
	copy(a.slot(0), "from ")
	copy(a.slot(1), "a list")
	second := a.send(2, ah, b, a.piece(0, 5), a.piece(1, 6))
	second.Flags |= verbs.SendInline
	empty := a.send(3, ah, b)
	empty.Flags |= verbs.SendInline
	b.receive(0, 1, 2)
	a.post(first, second, empty)
	clear(own)
	clear(a.mr.Bytes())
	w.run()
	expect(t, a.completions(), ok(1), ok(2), ok(3))
	got := b.completions()
	expect(t, got, ok(0), ok(1), ok(2))
	for i, want := range []string{"a buffer of the program's own", "from a list", ""} {
		if _, payload := got[i].Payload(b.slot(i)); string(payload) != want {
			t.Errorf("message %d is %q, want %q", i, payload, want)
		}
	}
}

func TestImmediate(t *testing.T) {
	const always = verbs.WCGRH | verbs.WCWithSMAC | verbs.WCWithNetworkHdrType
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	with := a.send(1, ah, b, a.piece(0, 3))
	with.Opcode, with.ImmData = verbs.WRSendWithImm, 0xA1B2C3D4
	without := a.send(2, ah, b, a.piece(0, 3))
	without.ImmData = 77 // not sent
	b.receive(0, 1)
	a.post(with, without)
	w.run()
	got := b.completions()
	expect(t, got, ok(0), ok(1))
	if got[0].ImmData != 0xA1B2C3D4 || got[0].Flags != always|verbs.WCWithImm || got[0].ByteLen != 43 {
		t.Errorf("with immediate data: %+v", got[0])
	}
	if got[0].SMAC != a.mac() || got[0].NetworkHeader != verbs.NetworkIPv4 || got[0].Port != 1 || got[0].VLAN != 0 || got[0].SL != 0 {
		t.Errorf("the frame: %+v", got[0])
	}
	if got[1].ImmData != 0 || got[1].Flags != always {
		t.Errorf("without: %+v", got[1])
	}
	if got[0].SrcQP != a.qp.Number() || got[0].QPN != b.qp.Number() || got[0].Opcode != verbs.WCRecv {
		t.Errorf("who and what: %+v", got[0])
	}
}

// Who is told of a send: those who asked, or all with SQSigAll; failures always.
func TestSignaled(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	all, err := a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: a.cq, RecvCQ: a.cq, Cap: defaultCap(), SQSigAll: true})
	check(t, err)
	check(t, all.Activate(testQKey))
	ah := a.ah("10.0.0.2")
	quiet, loud := a.send(1, ah, b), a.send(2, ah, b)
	quiet.Flags = verbs.SendFence | verbs.SendSolicited
	list := []verbs.SendWR{quiet, loud}
	check(t, a.qp.PostSend(list))
	w.run()
	expect(t, a.completions(), ok(2))
	check(t, all.PostSend(list))
	w.run()
	expect(t, a.completions(), ok(1), ok(2))
	quiet.SGList = []verbs.SGE{{LKey: 12345, Length: 1}}
	check(t, a.qp.PostSend([]verbs.SendWR{quiet}))
	w.run()
	expect(t, a.completions(), outcome{1, verbs.WCLocProtErr})
}
