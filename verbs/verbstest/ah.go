// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var ahTests = []rig.Test{
	{Name: "answer", Run: answers},
	{Name: "create AH refuses", Run: createAHRefuses},
	{Name: "close AH while referred to", Run: closeAHWhileReferredTo},
	{Name: "close AH and MR once posted", Run: closeOncePosted},
	{Name: "AH from completion refuses", Run: ahFromWCRefuses},
	{Name: "AH from a group's message", Run: ahFromGroupMessage},
	{Name: "privileged Q_Key in a request", Run: privilegedQKeyInRequest},
	{Name: "loopback", Run: loopback},
}

// A response is sent to the source of the message, from the address that the message was sent to, over IPv4 and IPv6.
func answers(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	for i, from := range a.End.Addresses() {
		dest := b.End.Addresses()[i]
		t.Run(dest.String(), func(t *testing.T) { answer(t, a, b, from, dest) })
	}
	t.Run("itself", func(t *testing.T) { answer(t, a, a, a.End.IPv4, a.End.IPv4) })
}

func answer(t *testing.T, a, peer *rig.Station, from, dest netip.Addr) {
	route := a.Route(dest)
	route.GRH.FlowLabel, route.GRH.TrafficClass, route.GRH.HopLimit = 0x12345, 0x2E<<2, 9
	ah, err := a.PD.CreateAH(rig.Guard(t), route)
	rig.Check(t, err)
	if got, err := ah.Query(); got != *route || err != nil {
		t.Errorf("query: %+v, %v", got, err)
	}
	peer.Receive(0)
	a.Post(a.Send(1, ah, peer.QP, a.Piece(1, 1)))
	wc := between(t, a, peer)
	grh, _ := wc.Payload(peer.Slot(0))
	if grh.SGID() != rig.GID(from) || grh.DGID() != rig.GID(dest) || grh.HopLimit() != 9 || grh.TrafficClass() != 0x2E<<2 {
		t.Errorf("GRH from %v to %v, hop limit %d, traffic class %#x", grh.SGID(), grh.DGID(), grh.HopLimit(), grh.TrafficClass())
	}
	label := uint32(0)
	if dest.Is6() && !a.Unseen {
		label = 0x12345
	}
	if v6 := grh.IPVersion() == 6; grh.FlowLabel() != label || v6 != dest.Is6() {
		t.Errorf("IP version %d, flow label %#x", grh.IPVersion(), grh.FlowLabel())
	}
	back, err := peer.PD.CreateAHFromWC(&wc, grh, 1)
	rig.Check(t, err)
	attr, err := back.Query()
	rig.Check(t, err)
	want := attr.GRH
	own, err := peer.Ctx.QueryGID(1, want.SGIDIndex)
	rig.Check(t, err)
	if want.DGID != rig.GID(from) || own.GID != rig.GID(dest) || want.TrafficClass != 0x2E<<2 {
		t.Errorf("answers from %v: %+v", own.GID, want)
	}
	a.Receive(3)
	reply := peer.Send(2, back, a.QP)
	reply.RemoteQPN = wc.SrcQP
	peer.Post(reply)
	between(t, peer, a)
}

// between waits for the two completions of a message, and returns that of the receive.
func between(t *testing.T, from, dest *rig.Station) verbs.WC {
	t.Helper()
	wcs := from.Wait(1)
	wcs = append(wcs, dest.Wait(1)...) // one station has both, in any order
	var found []verbs.WC
	for _, wc := range wcs {
		rig.Check(t, wc.Err())
		if wc.Opcode == verbs.WCRecv {
			found = append(found, wc)
		}
	}
	if len(found) != 1 {
		t.Fatalf("completions %+v", wcs)
	}
	return found[0]
}

func createAHRefuses(t *testing.T, w *rig.World) {
	s := w.A
	pd, err := s.Ctx.AllocPD()
	rig.Check(t, err)
	good, none := *s.Route(w.B.End.IPv4), s.EmptyLine()
	rows := []struct {
		name   string
		change func(a *verbs.AHAttr)
		want   error
		says   string
	}{
		{"no destination", func(a *verbs.AHAttr) { a.GRH.DGID = verbs.GID{} }, unix.EINVAL, "no destination"},
		{"port 2", func(a *verbs.AHAttr) { a.Port = 2 }, unix.EINVAL, "port 2"},
		{"service level 8", func(a *verbs.AHAttr) { a.SL = 8 }, unix.EINVAL, "at most 7"},
		{"flow label of 21 bits", func(a *verbs.AHAttr) { a.GRH.FlowLabel = 1 << 20 }, unix.EINVAL, "20 bits"},
		{"no such GID", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = none }, unix.ENODATA, fmt.Sprint("index ", none)},
		{"negative GID index", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = -1 }, unix.EINVAL, "index -1"},
		{"GID index beyond the table", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.GIDTableLen() }, unix.EINVAL, fmt.Sprint("0 to ", s.GIDTableLen()-1)},
		{"from IPv6 to IPv4", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.Line(s.End.IPv6) }, unix.EINVAL, "SGIDIndex"},
		{"no such host", func(a *verbs.AHAttr) { a.GRH.DGID = rig.GID(w.Pair.Unreachable) }, unix.EHOSTUNREACH, w.Pair.Unreachable.String()},
	}
	for _, row := range rows {
		attr := good
		row.change(&attr)
		_, err := pd.CreateAH(rig.Guard(t), &attr)
		rig.Refused(t, err, row.want, row.says)
	}
	rig.Check(t, pd.Close()) // a handle that was not created does not use the PD
}

// If a handle is closed while a request that uses it waits, the request fails and the queue stops.
func closeAHWhileReferredTo(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	rig.To(t, a.QP, verbs.QPStateSQD)
	a.Post(a.Send(1, ah, b.QP), a.Send(2, ah, b.QP))
	rig.Check(t, ah.Close())
	rig.To(t, a.QP, verbs.QPStateRTS)
	got := a.Expect(rig.Ended(1, verbs.WCLocQPOpErr), rig.Flushed(2))
	rig.Refused(t, got[0].Err(), unix.EINVAL, "address handle")
	w.NothingElse()
}

// Posted requests are sent before their handle and region are destroyed. A program need not wait for a datagram's
// completion, which means only that the card has read the message; mckey of rdmacm-utils does not wait.
func closeOncePosted(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	for range 50 {
		b.Receive(0)
		b.Receive(1)
		ah := a.AH(b.End.IPv4)
		mr, err := a.PD.AllocMR(100, verbs.AccessLocalWrite)
		rig.Check(t, err)
		a.Post(a.Send(1, ah, b.QP, mr.SGE(0, 7)))
		rig.Check(t, ah.Close())
		again := a.AH(b.End.IPv4)
		a.Post(a.Send(2, again, b.QP, mr.SGE(0, 7)))
		rig.Check(t, mr.Close())
		a.Expect(rig.OK(1), rig.OK(2))
		b.Wait(2)
		rig.Check(t, again.Close())
	}
}

func ahFromWCRefuses(t *testing.T, w *rig.World) {
	s := w.A
	grh := make(verbs.GRH, 40)
	_, noFlag := s.PD.CreateAHFromWC(&verbs.WC{}, grh, 1)
	rig.Refused(t, noFlag, unix.EINVAL, "no GRH")
	_, noHeader := s.PD.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 1)
	rig.Refused(t, noHeader, unix.EINVAL, "no GRH")
	_, short := s.PD.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, nil, 1)
	rig.Refused(t, short, unix.EINVAL)
	grh = ipv4Header(w.B.End.IPv4, w.Pair.Unreachable)
	_, gone := s.PD.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 1)
	rig.Refused(t, gone, unix.ENODATA, w.Pair.Unreachable.String(), "no longer an address of this port")
	_, port := s.PD.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 3)
	rig.Refused(t, port, unix.EINVAL, "port 3")
}

// ipv4Header returns the GRH of a packet over IPv4, with the fields that its methods read.
func ipv4Header(from, dest netip.Addr) verbs.GRH {
	grh := make(verbs.GRH, 40)
	ip := grh[20:]
	copy(ip, []byte{0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17})
	copy(ip[12:], from.AsSlice())
	copy(ip[16:], dest.AsSlice())
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	return grh
}

// A response to a group's message is sent from the card's own address of the same IP version.
func ahFromGroupMessage(t *testing.T, w *rig.World) {
	s := w.A
	v6 := make(verbs.GRH, 40)
	v6[0], v6[6], v6[7] = 0x60, 17, 1
	from, group := rig.GID(w.B.End.IPv6), rig.GID(rig.GroupV6)
	copy(v6[8:], from[:])
	copy(v6[24:], group[:])
	attr, err := s.Ctx.InitAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, v6, 1)
	rig.Check(t, err)
	source, err := s.Ctx.QueryGID(1, attr.GRH.SGIDIndex)
	if attr.GRH.DGID != from || err != nil || source.GID != rig.GID(s.End.IPv6) {
		t.Errorf("%+v from %v (%v), want to %v from %v", attr, source.GID, err, from, s.End.IPv6)
	}
}

// A Q_Key with the high bit in a request stands for the queue pair's own Q_Key.
func privilegedQKeyInRequest(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	wr := a.Send(1, a.AH(b.End.IPv4), b.QP)
	wr.RemoteQKey = 0x80000000 | 0x5555
	b.Receive(0)
	a.Post(wr)
	b.Expect(rig.OK(0))
}

// Messages to the card's own address are delivered by the same rules.
func loopback(t *testing.T, w *rig.World) {
	a := w.A
	second := a.NewQP(rig.DefaultCap())
	rig.Check(t, second.Activate(0x22222222))
	before, err := a.Ctx.QueryPort(1)
	rig.Check(t, err)
	for _, own := range a.End.Addresses() {
		ah, text := a.AH(own), own.String()
		copy(a.Slot(1), text)
		a.Receive(0)
		rig.Check(t, second.PostSend([]verbs.SendWR{a.Send(1, ah, a.QP, a.Piece(1, len(text)))}))
		got := a.Expect(rig.OK(0), rig.OK(1)) // it is delivered before the send completes
		grh, payload := a.Received(got[0])
		if payload != text || grh.SGID() != rig.GID(own) || got[0].SrcQP != second.Number() {
			t.Errorf("got %q from %v, QP %v", payload, grh.SGID(), got[0].SrcQP)
		}
		wrong := a.Send(2, ah, a.QP, a.Piece(1, 1))
		wrong.RemoteQKey = 3
		rig.Check(t, second.PostSend([]verbs.SendWR{wrong}))
		a.Expect(rig.OK(2))
	}
	w.NothingElse()
	a.ExpectDrops(map[string]uint64{"qkey": 3})
	w.B.ExpectDrops(map[string]uint64{}) // no packet was on the wire
	port, err := a.Ctx.QueryPort(1)
	rig.Check(t, err)
	if n := port.QKeyViolations - before.QKeyViolations; n != 3 {
		t.Errorf("%d Q_Key violations", n)
	}
}
