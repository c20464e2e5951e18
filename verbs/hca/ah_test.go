package hca

import (
	"context"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// What an answer goes to is where the message came from, over IPv4 and IPv6, and from
// the address that it was sent to.
func TestAnswer(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	for _, row := range []struct{ from, to string }{
		{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}, {"fe80::1", "fe80::2"}, {"10.0.0.1", "10.0.0.1"},
	} {
		t.Run(row.to, func(t *testing.T) {
			peer := b
			if row.from == row.to {
				peer = a
			}
			route := a.route(row.to)
			route.GRH.FlowLabel, route.GRH.TrafficClass, route.GRH.HopLimit = 0x12345, 0x2E<<2, 9
			ah, err := a.pd.CreateAH(context.Background(), route)
			check(t, err)
			if ah.Query() != *route {
				t.Errorf("query: %+v", ah.Query())
			}
			peer.receive(0)
			a.post(a.send(1, ah, peer, a.piece(1, 1)))
			w.run()
			wc := received(t, append(a.completions(), b.completions()...))
			grh, _ := wc.Payload(peer.slot(0))
			if grh.SGID() != gid(row.from) || grh.DGID() != gid(row.to) || grh.HopLimit() != 9 || grh.TrafficClass() != 0x2E<<2 {
				t.Errorf("GRH from %v to %v, hop limit %d, traffic class %#x", grh.SGID(), grh.DGID(), grh.HopLimit(), grh.TrafficClass())
			}
			if v6 := grh.IPVersion() == 6; v6 != (grh.FlowLabel() == 0x12345) || v6 != !gid(row.to).IsIPv4() {
				t.Errorf("IP version %d, flow label %#x", grh.IPVersion(), grh.FlowLabel())
			}
			back, err := peer.pd.CreateAHFromWC(&wc, grh, 1)
			check(t, err)
			want := back.Query().GRH
			own, err := peer.ctx.QueryGID(1, want.SGIDIndex)
			check(t, err)
			if want.DGID != gid(row.from) || own.GID != gid(row.to) || want.TrafficClass != 0x2E<<2 {
				t.Errorf("answers from %v: %+v", own.GID, want)
			}
			a.receive(3)
			answer := peer.send(2, back, a)
			answer.RemoteQPN = wc.SrcQP
			peer.post(answer)
			w.run()
			received(t, append(a.completions(), b.completions()...))
		})
	}
}

// received picks the one receive out of completions that all succeeded.
func received(t *testing.T, wcs []verbs.WC) verbs.WC {
	t.Helper()
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

func TestCreateAHRefuses(t *testing.T) {
	s := newStillPair(t).a
	good := *s.route("10.0.0.2")
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
		{"no such GID", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = 9 }, unix.EADDRNOTAVAIL, "line 9"},
		{"negative GID index", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = -1 }, unix.EADDRNOTAVAIL, "line -1"},
		{"from IPv6 to IPv4", func(a *verbs.AHAttr) { a.GRH.SGIDIndex = 1 }, unix.EINVAL, "SGIDIndex"},
		{"nobody there", func(a *verbs.AHAttr) { a.GRH.DGID = gid("10.0.0.9") }, unix.EHOSTUNREACH, "10.0.0.9"},
	}
	for _, row := range rows {
		attr := good
		row.change(&attr)
		_, err := s.pd.CreateAH(context.Background(), &attr)
		refused(t, err, row.want, row.says)
	}
	if users := s.device.pds.objects[0].users; users != 2 {
		t.Errorf("%d users of the PD, want the station's MR and QP", users)
	}
}

// A handle that is closed while a request waits: the request fails, the queue stops.
func TestCloseAHWhileReferredTo(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	to(t, a.qp, verbs.QPStateSQD)
	a.post(a.send(1, ah, b), a.send(2, ah, b))
	check(t, ah.Close())
	to(t, a.qp, verbs.QPStateRTS)
	w.run()
	got := a.completions()
	expect(t, got, outcome{1, verbs.WCLocQPOpErr}, flushed(2))
	refused(t, got[0].Err(), unix.EINVAL, "address handle")
}

func TestAHFromWCRefuses(t *testing.T) {
	s := newStillPair(t).a
	grh := make(verbs.GRH, 40)
	_, noFlag := s.pd.CreateAHFromWC(&verbs.WC{}, grh, 1)
	refused(t, noFlag, unix.EINVAL, "no GRH")
	_, noHeader := s.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 1)
	refused(t, noHeader, unix.EINVAL, "no GRH")
	_, short := s.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, nil, 1)
	refused(t, short, unix.EINVAL)
	copy(grh[20:], []byte{0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0x26, 0xb4, 10, 0, 0, 2, 10, 0, 0, 77})
	_, gone := s.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 1)
	refused(t, gone, unix.EADDRNOTAVAIL, "10.0.0.77", "has gone")
	_, port := s.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 3)
	refused(t, port, unix.EINVAL, "port 3")
}

// An answer to a group's message goes out from the own address of its family.
func TestAHFromGroupMessage(t *testing.T) {
	s := newStillPair(t).a
	v6 := make(verbs.GRH, 40)
	v6[0], v6[6], v6[7] = 0x60, 17, 1
	from, group := gid("fd00::2"), gid("ff0e::1")
	copy(v6[8:], from[:])
	copy(v6[24:], group[:])
	attr, err := s.ctx.AHAttrFromWC(&verbs.WC{Flags: verbs.WCGRH}, v6, 1)
	check(t, err)
	source, err := s.ctx.QueryGID(1, attr.GRH.SGIDIndex)
	if attr.GRH.DGID != from || err != nil || source.GID != gid("fd00::1") {
		t.Errorf("%+v from %v (%v), want to %v from fd00::1", attr, source.GID, err, from)
	}
}

// Messages to the device's own address are delivered here, by the same ladder.
func TestLoopback(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	second := a.newQP(defaultCap())
	check(t, second.Activate(0x22222222))
	for _, own := range []string{"10.0.0.1", "fd00::1", "fe80::1"} {
		ah := a.ah(own)
		copy(a.slot(1), own)
		a.receive(0)
		check(t, second.PostSend([]verbs.SendWR{a.send(1, ah, a, a.piece(1, len(own)))}))
		w.run()
		got := a.completions()
		expect(t, got, ok(0), ok(1))
		grh, payload := got[0].Payload(a.slot(0))
		if string(payload) != own || grh.SGID() != gid(own) || got[0].SrcQP != second.Number() {
			t.Errorf("got %q from %v, QP %v", payload, grh.SGID(), got[0].SrcQP)
		}
		wrong := a.send(2, ah, a, a.piece(1, 1))
		wrong.RemoteQKey = 3
		check(t, second.PostSend([]verbs.SendWR{wrong}))
		w.run()
		expect(t, a.completions(), ok(2))
	}
	c := a.device.engine.Counters()
	if c.Loopback != 6 || c.Delivered != 3 || a.drops()["qkey"] != 3 || w.b.device.engine.Counters().Received != 0 {
		t.Errorf("counters %+v", c)
	}
	port, err := a.ctx.QueryPort(1)
	check(t, err)
	if port.QKeyViolations != 3 {
		t.Errorf("%d Q_Key violations", port.QKeyViolations)
	}
}

// Neighbour entries without an address (a bridge's) are nobody's next hop, also not of
// handles that have none: those to groups and to this device.
func TestNeighbourWithoutAddress(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	route := a.route("10.0.0.2")
	route.GRH.DGID = gid("239.1.2.3")
	group, err := a.pd.CreateAH(context.Background(), route)
	check(t, err)
	a.device.news.Neighbour(netip.Addr{})
	a.device.look(a.device.news.take())
	a.post(a.send(1, group, w.b))
	w.run()
	expect(t, a.completions(), ok(1))
	if drops := a.drops(); len(drops) != 0 {
		t.Errorf("drops %v", drops)
	}
}

// A Q_Key with the high bit in a request means the queue pair's own.
func TestPrivilegedQKeyInRequest(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
	wr := a.send(1, ah, b)
	wr.RemoteQKey = 0x80000000 | 0x5555
	b.receive(0)
	a.post(wr)
	w.run()
	expect(t, b.completions(), ok(0))
}
