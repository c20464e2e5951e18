// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var sendTests = []rig.Test{
	{Name: "SGE lists", Run: sgeLists},
	{Name: "inline", Run: inline},
	{Name: "immediate", Run: immediate},
	{Name: "signaled", Run: signaled},
	{Name: "longer than the MTU", Run: longerThanTheMTU},
}

// sgeLists checks random SGE lists at both ends: the data must arrive after the GRH.
func sgeLists(t *testing.T, w *rig.World) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv6)
	for i := range a.MR.Bytes() {
		a.MR.Bytes()[i] = byte(random.Uint32())
	}
	most := min(1024, a.MTU())
	for range 500 {
		sges := cut(random, a, random.IntN(most+1))
		want := a.Gather(sges)
		clear(b.MR.Bytes())
		into := cut(random, b, 40+len(want)+random.IntN(64))
		rig.Check(t, b.QP.PostRecv([]verbs.RecvWR{{ID: 9, SGList: into}}))
		a.Post(a.Send(8, ah, b.QP, sges...))
		a.Expect(rig.OK(8))
		got := b.Expect(rig.OK(9))
		buffer := b.Gather(into)
		grh, payload := got[0].Payload(buffer)
		if !bytes.Equal(payload, want) || grh.SGID() != rig.GID(a.End.IPv6) || grh.DGID() != rig.GID(b.End.IPv6) {
			t.Fatalf("%d bytes from %v into %v: got %d bytes, from %v to %v", len(want), sges, into, len(payload), grh.SGID(), grh.DGID())
		}
		if left := buffer[got[0].ByteLen:]; slices.ContainsFunc(left, func(b byte) bool { return b != 0 }) {
			t.Fatal("memory after the message was written")
		}
	}
}

// cut divides a length into up to four SGEs, each in its own slot.
func cut(random *rand.Rand, s *rig.Station, length int) (sges []verbs.SGE) {
	first := random.IntN(16)
	for i := range 4 {
		n := length
		if i < 3 {
			n = random.IntN(length + 1)
		}
		if n > 0 || random.IntN(4) == 0 {
			sges = append(sges, s.MR.SGE((first+i)*rig.SlotLen+random.IntN(100), n))
		}
		length -= n
	}
	return sges
}

// inline checks that inline data is copied, so that its memory can be reused immediately.
func inline(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	own := []byte("a buffer of the program's own")
	first := a.Send(1, ah, b.QP)
	first.Flags |= verbs.SendInline
	first.InlineData = own
	copy(a.Slot(0), "from ")
	copy(a.Slot(1), "a list")
	second := a.Send(2, ah, b.QP, a.Piece(0, 5), a.Piece(1, 6))
	second.Flags |= verbs.SendInline
	empty := a.Send(3, ah, b.QP)
	empty.Flags |= verbs.SendInline
	b.Receive(0, 1, 2)
	rig.To(t, a.QP, verbs.QPStateSQD) // so that the memory changes before the messages are sent
	a.Post(first, second, empty)
	clear(own)
	clear(a.MR.Bytes())
	rig.To(t, a.QP, verbs.QPStateRTS)
	a.Expect(rig.OK(1), rig.OK(2), rig.OK(3))
	got := b.Expect(rig.OK(0), rig.OK(1), rig.OK(2))
	for i, want := range []string{"a buffer of the program's own", "from a list", ""} {
		if _, payload := b.Received(got[i]); payload != want {
			t.Errorf("message %d is %q, want %q", i, payload, want)
		}
	}
}

func immediate(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	always, mac := verbs.WCGRH|verbs.WCWithSMAC|verbs.WCWithNetworkHdrType, a.End.MAC
	if a.Unseen {
		always, mac = verbs.WCGRH|verbs.WCWithNetworkHdrType, verbs.MAC{}
	}
	ah := a.AH(b.End.IPv4)
	with := a.Send(1, ah, b.QP, a.Piece(0, 3))
	with.Opcode, with.ImmData = verbs.WRSendWithImm, 0xA1B2C3D4
	without := a.Send(2, ah, b.QP, a.Piece(0, 3))
	without.ImmData = 77 // not sent
	b.Receive(0, 1)
	a.Post(with, without)
	got := b.Expect(rig.OK(0), rig.OK(1))
	if got[0].ImmData != 0xA1B2C3D4 || got[0].Flags != always|verbs.WCWithImm || got[0].ByteLen != 43 {
		t.Errorf("with immediate data: %+v", got[0])
	}
	if got[0].SMAC != mac || got[0].NetworkHeader != verbs.NetworkIPv4 || got[0].Port != 1 || got[0].VLAN != 0 || got[0].SL != 0 {
		t.Errorf("the frame: %+v", got[0])
	}
	if got[1].ImmData != 0 || got[1].Flags != always {
		t.Errorf("without: %+v", got[1])
	}
	if got[0].SrcQP != a.QP.Number() || got[0].QPN != b.QP.Number() || got[0].Opcode != verbs.WCRecv {
		t.Errorf("got the completion %+v", got[0])
	}
}

// signaled checks that signaled and failed sends complete, and with SQSigAll all sends.
func signaled(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	all := a.NewQPWith(verbs.QPInitAttr{SendCQ: a.CQ, RecvCQ: a.CQ, Cap: rig.DefaultCap(), SQSigAll: true})
	rig.Check(t, all.Activate(rig.TestQKey))
	ah := a.AH(b.End.IPv4)
	quiet, loud := a.Send(1, ah, b.QP), a.Send(2, ah, b.QP)
	quiet.Flags = verbs.SendFence | verbs.SendSolicited
	list := []verbs.SendWR{quiet, loud}
	a.Post(list...)
	a.Expect(rig.OK(2))
	rig.Check(t, all.PostSend(list))
	a.Expect(rig.OK(1), rig.OK(2))
	quiet.SGList = []verbs.SGE{{LKey: 12345, Length: 1}}
	a.Post(quiet)
	a.Expect(rig.Ended(1, verbs.WCLocProtErr))
	w.NothingElse()
}

// longerThanTheMTU checks that the error of a message that is too long contains the active MTU.
func longerThanTheMTU(t *testing.T, w *rig.World) {
	a, mtu := w.A, w.A.MTU()
	ah := a.AH(w.B.End.IPv4)
	a.Post(a.Send(1, ah, w.B.QP, a.MR.SGE(0, mtu)), a.Send(2, ah, w.B.QP, a.MR.SGE(0, mtu+1)), a.Send(3, ah, w.B.QP))
	got := a.Expect(rig.OK(1), rig.Ended(2, verbs.WCLocLenErr), rig.Flushed(3))
	if int(got[1].VendorErr) != mtu || got[0].VendorErr != 0 {
		t.Errorf("vendor errors %d, %d", got[0].VendorErr, got[1].VendorErr)
	}
	rig.Refused(t, got[1].Err(), unix.EMSGSIZE, fmt.Sprintf("active MTU of %d bytes", mtu))
}
