package verbstest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var sendTests = []test{
	{name: "SGE lists", run: sgeLists},
	{name: "inline", run: inline},
	{name: "immediate", run: immediate},
	{name: "signaled", run: signaled},
	{name: "longer than the MTU", run: longerThanTheMTU},
}

// Whatever the pieces, what was sent is what arrives, behind the GRH.
func sgeLists(t *testing.T, w *world) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv6)
	for i := range a.mr.Bytes() {
		a.mr.Bytes()[i] = byte(random.Uint32())
	}
	most := min(1024, a.mtu())
	for range 500 {
		sges := cut(random, a, random.IntN(most+1))
		want := a.gather(sges)
		clear(b.mr.Bytes())
		into := cut(random, b, 40+len(want)+random.IntN(64))
		check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 9, SGList: into}}))
		a.post(a.send(8, ah, b.qp, sges...))
		a.expect(ok(8))
		got := b.expect(ok(9))
		buffer := b.gather(into)
		grh, payload := got[0].Payload(buffer)
		if !bytes.Equal(payload, want) || grh.SGID() != gid(a.end.IPv6) || grh.DGID() != gid(b.end.IPv6) {
			t.Fatalf("%d bytes from %v into %v: got %d bytes, from %v to %v", len(want), sges, into, len(payload), grh.SGID(), grh.DGID())
		}
		if left := buffer[got[0].ByteLen:]; slices.ContainsFunc(left, func(b byte) bool { return b != 0 }) {
			t.Fatal("memory behind the message was written to")
		}
	}
}

// gather is what lies in pieces of a station's memory.
func (s *station) gather(sges []verbs.SGE) (all []byte) {
	for _, sge := range sges {
		all = append(all, s.mr.Bytes()[sge.Addr:][:sge.Length]...)
	}
	return all
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
func inline(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	own := []byte("a buffer of the program's own")
	first := a.send(1, ah, b.qp)
	first.Flags |= verbs.SendInline
	first.InlineData = own
	copy(a.slot(0), "from ")
	copy(a.slot(1), "a list")
	second := a.send(2, ah, b.qp, a.piece(0, 5), a.piece(1, 6))
	second.Flags |= verbs.SendInline
	empty := a.send(3, ah, b.qp)
	empty.Flags |= verbs.SendInline
	b.receive(0, 1, 2)
	to(t, a.qp, verbs.QPStateSQD) // nothing is sent before the memory has changed
	a.post(first, second, empty)
	clear(own)
	clear(a.mr.Bytes())
	to(t, a.qp, verbs.QPStateRTS)
	a.expect(ok(1), ok(2), ok(3))
	got := b.expect(ok(0), ok(1), ok(2))
	for i, want := range []string{"a buffer of the program's own", "from a list", ""} {
		if _, payload := b.received(got[i]); payload != want {
			t.Errorf("message %d is %q, want %q", i, payload, want)
		}
	}
}

func immediate(t *testing.T, w *world) {
	const always = verbs.WCGRH | verbs.WCWithSMAC | verbs.WCWithNetworkHdrType
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	with := a.send(1, ah, b.qp, a.piece(0, 3))
	with.Opcode, with.ImmData = verbs.WRSendWithImm, 0xA1B2C3D4
	without := a.send(2, ah, b.qp, a.piece(0, 3))
	without.ImmData = 77 // not sent
	b.receive(0, 1)
	a.post(with, without)
	got := b.expect(ok(0), ok(1))
	if got[0].ImmData != 0xA1B2C3D4 || got[0].Flags != always|verbs.WCWithImm || got[0].ByteLen != 43 {
		t.Errorf("with immediate data: %+v", got[0])
	}
	if got[0].SMAC != a.end.MAC || got[0].NetworkHeader != verbs.NetworkIPv4 || got[0].Port != 1 || got[0].VLAN != 0 || got[0].SL != 0 {
		t.Errorf("the frame: %+v", got[0])
	}
	if got[1].ImmData != 0 || got[1].Flags != always {
		t.Errorf("without: %+v", got[1])
	}
	if got[0].SrcQP != a.qp.Number() || got[0].QPN != b.qp.Number() || got[0].Opcode != verbs.WCRecv {
		t.Errorf("who and what: %+v", got[0])
	}
}

// Signaled sends complete, or all with SQSigAll; failures always do.
func signaled(t *testing.T, w *world) {
	a, b := w.a, w.b
	all := a.newQPWith(verbs.QPInitAttr{SendCQ: a.cq, RecvCQ: a.cq, Cap: defaultCap(), SQSigAll: true})
	check(t, all.Activate(testQKey))
	ah := a.ah(b.end.IPv4)
	quiet, loud := a.send(1, ah, b.qp), a.send(2, ah, b.qp)
	quiet.Flags = verbs.SendFence | verbs.SendSolicited
	list := []verbs.SendWR{quiet, loud}
	a.post(list...)
	a.expect(ok(2))
	check(t, all.PostSend(list))
	a.expect(ok(1), ok(2))
	quiet.SGList = []verbs.SGE{{LKey: 12345, Length: 1}}
	a.post(quiet)
	a.expect(outcome{1, verbs.WCLocProtErr})
	w.nothingElse()
}

// The error of a message that is too long names the active MTU.
func longerThanTheMTU(t *testing.T, w *world) {
	a, mtu := w.a, w.a.mtu()
	ah := a.ah(w.b.end.IPv4)
	a.post(a.send(1, ah, w.b.qp, a.mr.SGE(0, mtu)), a.send(2, ah, w.b.qp, a.mr.SGE(0, mtu+1)), a.send(3, ah, w.b.qp))
	got := a.expect(ok(1), outcome{2, verbs.WCLocLenErr}, flushed(3))
	if int(got[1].VendorErr) != mtu || got[0].VendorErr != 0 {
		t.Errorf("vendor errors %d, %d", got[0].VendorErr, got[1].VendorErr)
	}
	refused(t, got[1].Err(), unix.EMSGSIZE, fmt.Sprintf("active MTU of %d bytes", mtu))
}
