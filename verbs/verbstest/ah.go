package verbstest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var ahTests = []test{
	{name: "answer", run: answers},
	{name: "create AH refuses", run: createAHRefuses},
	{name: "close AH while referred to", run: closeAHWhileReferredTo},
	{name: "AH from completion refuses", run: ahFromWCRefuses},
	{name: "AH from a group's message", run: ahFromGroupMessage},
	{name: "privileged Q_Key in a request", run: privilegedQKeyInRequest},
	{name: "loopback", run: loopback},
}

// What an answer goes to is where the message came from, over IPv4 and IPv6, and from
// the address that it was sent to.
func answers(t *testing.T, w *world) {
	a, b := w.a, w.b
	for i, from := range a.end.addresses() {
		dest := b.end.addresses()[i]
		t.Run(dest.String(), func(t *testing.T) { answer(t, a, b, from, dest) })
	}
	t.Run("itself", func(t *testing.T) { answer(t, a, a, a.end.IPv4, a.end.IPv4) })
}

func answer(t *testing.T, a, peer *station, from, dest netip.Addr) {
	route := a.route(dest)
	route.GRH.FlowLabel, route.GRH.TrafficClass, route.GRH.HopLimit = 0x12345, 0x2E<<2, 9
	ah, err := a.pd.CreateAH(guard(t), route)
	check(t, err)
	if got, err := ah.Query(); got != *route || err != nil {
		t.Errorf("query: %+v, %v", got, err)
	}
	peer.receive(0)
	a.post(a.send(1, ah, peer.qp, a.piece(1, 1)))
	wc := between(t, a, peer)
	grh, _ := wc.Payload(peer.slot(0))
	if grh.SGID() != gid(from) || grh.DGID() != gid(dest) || grh.HopLimit() != 9 || grh.TrafficClass() != 0x2E<<2 {
		t.Errorf("GRH from %v to %v, hop limit %d, traffic class %#x", grh.SGID(), grh.DGID(), grh.HopLimit(), grh.TrafficClass())
	}
	if v6 := grh.IPVersion() == 6; v6 != (grh.FlowLabel() == 0x12345) || v6 != dest.Is6() {
		t.Errorf("IP version %d, flow label %#x", grh.IPVersion(), grh.FlowLabel())
	}
	back, err := peer.pd.CreateAHFromWC(&wc, grh, 1)
	check(t, err)
	attr, err := back.Query()
	check(t, err)
	want := attr.GRH
	own, err := peer.ctx.QueryGIDEx(1, want.SGIDIndex)
	check(t, err)
	if want.DGID != gid(from) || own.GID != gid(dest) || want.TrafficClass != 0x2E<<2 {
		t.Errorf("answers from %v: %+v", own.GID, want)
	}
	a.receive(3)
	reply := peer.send(2, back, a.qp)
	reply.RemoteQPN = wc.SrcQP
	peer.post(reply)
	between(t, peer, a)
}

// between waits for the two completions of a message, and gives the receive.
func between(t *testing.T, from, dest *station) verbs.WC {
	t.Helper()
	wcs := from.wait(1)
	wcs = append(wcs, dest.wait(1)...) // of one station they may be either
	var found []verbs.WC
	for _, wc := range wcs {
		check(t, wc.Err())
		if wc.Opcode == verbs.WCRecv {
			found = append(found, wc)
		}
	}
	if len(found) != 1 {
		t.Fatalf("completions %+v", wcs)
	}
	return found[0]
}

func createAHRefuses(t *testing.T, w *world) {
	s := w.a
	pd, err := s.ctx.AllocPD()
	check(t, err)
	good, none := *s.route(w.b.end.IPv4), s.emptyLine()
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
		{"GID index beyond the table", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.gidTableLen() }, unix.EINVAL, fmt.Sprint("0 to ", s.gidTableLen()-1)},
		{"from IPv6 to IPv4", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.line(s.end.IPv6) }, unix.EINVAL, "SGIDIndex"},
		{"nobody there", func(a *verbs.AHAttr) { a.GRH.DGID = gid(w.pair.Unreachable) }, unix.EHOSTUNREACH, w.pair.Unreachable.String()},
	}
	for _, row := range rows {
		attr := good
		row.change(&attr)
		_, err := pd.CreateAH(guard(t), &attr)
		refused(t, err, row.want, row.says)
	}
	check(t, pd.Close()) // what was refused does not use it
}

// A handle that is closed while a request waits: the request fails, the queue stops.
func closeAHWhileReferredTo(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	to(t, a.qp, verbs.QPStateSQD)
	a.post(a.send(1, ah, b.qp), a.send(2, ah, b.qp))
	check(t, ah.Close())
	to(t, a.qp, verbs.QPStateRTS)
	got := a.expect(outcome{1, verbs.WCLocQPOpErr}, flushed(2))
	refused(t, got[0].Err(), unix.EINVAL, "address handle")
	w.nothingElse()
}

func ahFromWCRefuses(t *testing.T, w *world) {
	s := w.a
	grh := make(verbs.GRH, 40)
	_, noFlag := s.pd.CreateAHFromWC(&verbs.WC{}, grh, 1)
	refused(t, noFlag, unix.EINVAL, "no GRH")
	_, noHeader := s.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 1)
	refused(t, noHeader, unix.EINVAL, "no GRH")
	_, short := s.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, nil, 1)
	refused(t, short, unix.EINVAL)
	grh = ipv4Header(w.b.end.IPv4, w.pair.Unreachable)
	_, gone := s.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 1)
	refused(t, gone, unix.ENODATA, w.pair.Unreachable.String(), "not have any more")
	_, port := s.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 3)
	refused(t, port, unix.EINVAL, "port 3")
}

// ipv4Header is the GRH of a packet over IPv4, as far as its addresses are looked at.
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

// An answer to a group's message goes out from the own address of its family.
func ahFromGroupMessage(t *testing.T, w *world) {
	s := w.a
	v6 := make(verbs.GRH, 40)
	v6[0], v6[6], v6[7] = 0x60, 17, 1
	from, group := gid(w.b.end.IPv6), gid(groupV6)
	copy(v6[8:], from[:])
	copy(v6[24:], group[:])
	attr, err := s.ctx.InitAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, v6, 1)
	check(t, err)
	source, err := s.ctx.QueryGIDEx(1, attr.GRH.SGIDIndex)
	if attr.GRH.DGID != from || err != nil || source.GID != gid(s.end.IPv6) {
		t.Errorf("%+v from %v (%v), want to %v from %v", attr, source.GID, err, from, s.end.IPv6)
	}
}

// A Q_Key with the high bit in a request means the queue pair's own.
func privilegedQKeyInRequest(t *testing.T, w *world) {
	a, b := w.a, w.b
	wr := a.send(1, a.ah(b.end.IPv4), b.qp)
	wr.RemoteQKey = 0x80000000 | 0x5555
	b.receive(0)
	a.post(wr)
	b.expect(ok(0))
}

// Messages to the card's own address are delivered there, by the same rules.
func loopback(t *testing.T, w *world) {
	a := w.a
	second := a.newQP(defaultCap())
	check(t, second.Activate(0x22222222))
	before, err := a.ctx.QueryPort(1)
	check(t, err)
	for _, own := range a.end.addresses() {
		ah, text := a.ah(own), own.String()
		copy(a.slot(1), text)
		a.receive(0)
		check(t, second.PostSend([]verbs.SendWR{a.send(1, ah, a.qp, a.piece(1, len(text)))}))
		got := a.expect(ok(0), ok(1)) // it is there before the send is over
		grh, payload := a.received(got[0])
		if payload != text || grh.SGID() != gid(own) || got[0].SrcQP != second.Number() {
			t.Errorf("got %q from %v, QP %v", payload, grh.SGID(), got[0].SrcQP)
		}
		wrong := a.send(2, ah, a.qp, a.piece(1, 1))
		wrong.RemoteQKey = 3
		check(t, second.PostSend([]verbs.SendWR{wrong}))
		a.expect(ok(2))
	}
	w.nothingElse()
	a.expectDrops(map[string]uint64{"qkey": 3})
	w.b.expectDrops(map[string]uint64{}) // nothing of it was on the wire
	port, err := a.ctx.QueryPort(1)
	check(t, err)
	if n := port.QKeyViolations - before.QKeyViolations; n != 3 {
		t.Errorf("%d Q_Key violations", n)
	}
}
