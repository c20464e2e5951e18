// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/ids"
)

var testService = wire.ServiceIDFor(wire.PortSpaceUDP, 7174)

// cmID owns an inquiry or a listener.
type cmID struct{ events chan cm.Event }

func newCMID() *cmID { return &cmID{make(chan cm.Event, 1<<16)} }

func (o *cmID) CMEvent(e cm.Event) { o.events <- e }

func (o *cmID) next(t testing.TB) cm.Event {
	t.Helper()
	select {
	case e := <-o.events:
		return e
	case <-guard(t).Done():
		t.Fatal("no event")
	}
	return cm.Event{}
}

// listen answers all requests with a queue pair and their private data.
func (s *station) listen(qpn wire.QPN) (l *cm.Listener) {
	s.Helper()
	check(s, s.device.manager.Use())
	s.device.manager.With(func(m *cm.Manager, _ time.Time) {
		var err error
		l, err = m.Listen(cm.ListenConfig{Service: testService, Owner: &accepter{s.device, func() *cm.Listener { return l }, qpn}})
		check(s, err)
	})
	return l
}

type accepter struct {
	card     *Card
	listener func() *cm.Listener
	qpn      wire.QPN
}

func (a *accepter) CMEvent(cm.Event) {
	a.card.manager.With(func(_ *cm.Manager, now time.Time) {
		if r := a.listener().Next(); r != nil {
			_ = r.Reply(now, cm.Answer{QPN: a.qpn, QKey: 0x01234567, PrivateData: r.PrivateData[:8]})
		}
	})
}

// ask sends a request to the service.
func (s *station) ask(from, to string, number uint64, owner ids.Owner) *cm.Inquiry {
	s.Helper()
	var q *cm.Inquiry
	s.device.manager.With(func(m *cm.Manager, now time.Time) {
		var err error
		q, err = m.Ask(now, cm.AskConfig{
			Path: cm.Path{Local: gid(from), Remote: gid(to), TrafficClass: 0x68}, Service: testService,
			Source: netip.AddrPortFrom(address(from), 40000), Dest: netip.AddrPortFrom(address(to), 7174),
			PrivateData: binary.BigEndian.AppendUint64(nil, number), Timeout: 250 * time.Millisecond, Retries: 200, Owner: owner,
		})
		check(s, err)
	})
	return q
}

// answered checks that an inquiry got the reply of listen.
func answered(t testing.TB, e cm.Event, qpn wire.QPN, number uint64) {
	t.Helper()
	a := e.Answer
	if e.Kind != cm.EventReply || a.Status != wire.SIDRValid || a.QPN != qpn || a.QKey != 0x01234567 || binary.BigEndian.Uint64(a.PrivateData) != number {
		t.Errorf("%+v", e)
	}
}

// Requests and replies cross the wire and the card's own loopback.
func TestCardsAsk(t *testing.T) {
	w := newWirePair(t)
	w.a.listen(77)
	for i, row := range []struct {
		from     *station
		own, its string
	}{{w.b, "10.0.0.2", "10.0.0.1"}, {w.b, "fd00::2", "fd00::1"}, {w.b, "fe80::2", "fe80::1"}, {w.a, "10.0.0.1", "10.0.0.1"}, {w.a, "fd00::1", "fd00::1"}} {
		id := newCMID()
		row.from.ask(row.own, row.its, uint64(i), id)
		answered(t, id.next(t), 77, uint64(i))
	}
	id := newCMID()
	lost := w.b.ask("10.0.0.9", "10.0.0.1", 1, id) // not an address of b
	w.b.device.manager.With(func(*cm.Manager, time.Time) { lost.Cancel() })
	eventually(t, "the request is unroutable", func() bool { return w.b.device.manager.Counters()[cm.Unroutable] == 1 })
	if n := len(id.events); n != 0 {
		t.Errorf("got %d events of a cancelled inquiry, want 0", n)
	}
}

// Between interfaces a reply waits for an unknown neighbour, and while the handle is kept the kernel keeps the
// neighbour, but no longer.
func TestCardsAskOverVeth(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	l.a.listen(77)
	for i, row := range [][2]string{{"10.77.0.2", "10.77.0.1"}, {"fd77::2", "fd77::1"}} {
		id := newCMID()
		l.b.ask(row[0], row[1], uint64(i), id)
		answered(t, id.next(t), 77, uint64(i))
		if !managed(t, l.A, row[0]) {
			t.Errorf("%s is not managed while the handle is kept", row[0])
		}
	}
	m := l.a.device.manager
	m.Serving(func(q *ids.QP1) {
		for _, h := range q.Handles {
			h.Used = h.Used.Add(-ids.HandleIdle)
		}
	})
	m.WakeUp()
	eventually(t, "the end of the path", func() bool { return !managed(t, l.A, "10.77.0.2") })
}

// A thousand connects to one listener, fifty at a time, lose nothing and leave nothing behind.
func TestManyConnects(t *testing.T) {
	w := newWirePair(t)
	listener := w.a.listen(77)
	id := newCMID()
	for i := range uint64(1000) {
		w.b.ask("10.0.0.2", "10.0.0.1", i, id)
		if i >= 50 {
			if e := id.next(t); e.Kind != cm.EventReply || e.Answer.Status != wire.SIDRValid {
				t.Fatalf("%+v", e)
			}
		}
	}
	for range 50 {
		id.next(t)
	}
	w.a.device.manager.With(func(m *cm.Manager, now time.Time) { listener.Close(now) })
	a := w.a.device.manager.Counters()
	if a[cm.BacklogFull] != 0 || a[cm.Requests] != 1000 {
		t.Errorf("a: %v", a)
	}
	if d := w.a.drops(); len(d) != 0 {
		t.Errorf("drops %v", d)
	}
}

// While one host sends requests as fast as it can, from one address or from more than fit the backlog or the manager's
// handles, another host is served.
func TestFloodOfRequests(t *testing.T) {
	for _, senders := range []int{1, 2 * ids.MaxHandles} {
		t.Run(fmt.Sprint(senders, " senders"), func(t *testing.T) { floodOfRequests(t, senders) })
	}
}

func floodOfRequests(t *testing.T, senders int) {
	_, hosts, stations := newHosts(t, 3, 0)
	a, honest, flooder := stations[0], stations[1], stations[2].withQP1()
	a.listen(77)
	var from []netip.Addr
	for i := range senders {
		from = append(from, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	check(t, hosts[2].SetAddresses(from...))
	gids, err := flooder.ctx.QueryGIDTable(1)
	check(t, err)
	ahs := map[verbs.GID]*verbs.AH{}
	for _, own := range gids {
		ahs[own.GID], err = flooder.pd.CreateAH(guard(t), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: gid("10.0.0.1"), SGIDIndex: own.Index}})
		check(t, err)
	}
	req, id := make(wire.MAD, wire.MADLen), newCMID()
	const count = 20000
	for i := range count {
		f, sender := wire.SIDRReq{ServiceID: testService, RequestID: uint32(i)}, from[i%senders]
		header := wire.CMAddress{Source: netip.AddrPortFrom(sender, 1), Destination: hostAddress(0)}
		header.Put(f.PrivateData[:])
		req.PutSIDRReq(uint64(i), &f)
		flooder.manage(ahs[wire.GIDFromAddr(sender)], req)
		flooder.wait(1)
		if i%1000 == 0 {
			honest.ask("10.0.0.2", "10.0.0.1", uint64(i), id)
		}
	}
	for range count / 1000 {
		if e := id.next(t); e.Kind != cm.EventReply || e.Answer.QPN != 77 {
			t.Errorf("%+v", e)
		}
	}
	if used := a.device.own.Used(); used.AHs > ids.MaxHandles {
		t.Errorf("%+v", used)
	}
}

// An idle manager waits only for messages, and closes its handles after a while.
func TestManagerSleeps(t *testing.T) {
	w := newWirePair(t)
	m := w.b.device.manager
	if at, some := m.Due(); some {
		t.Errorf("got a timer at %v, want none", at)
	}
	w.a.listen(77)
	id := newCMID()
	w.b.ask("10.0.0.2", "10.0.0.1", 1, id)
	answered(t, id.next(t), 77, 1)
	at, some := m.Due()
	if !some || time.Until(at) > ids.HandleIdle {
		t.Errorf("the handle is due at %v, %v", at, some)
	}
	m.Serving(func(q *ids.QP1) {
		for _, h := range q.Handles {
			h.Used = h.Used.Add(-ids.HandleIdle)
		}
	})
	m.WakeUp()
	eventually(t, "the end of the handle", func() bool { _, some := m.Due(); return !some })
	if used := w.b.device.own.Used(); used.AHs != 0 {
		t.Errorf("%+v", used)
	}
}

// Messages queued in the manager when the card is closed are sent.
func TestCloseSendsWhatWaits(t *testing.T) {
	_, hosts, stations := newHosts(t, 2, 0)
	a, id := stations[0], newCMID()
	var l *cm.Listener
	a.device.manager.With(func(m *cm.Manager, _ time.Time) {
		var err error
		l, err = m.Listen(cm.ListenConfig{Service: testService, Owner: id})
		check(t, err)
	})
	asker := newCMID()
	stations[1].ask("10.0.0.2", "10.0.0.1", 1, asker)
	id.next(t)
	a.device.manager.With(func(m *cm.Manager, now time.Time) { l.Close(now) })
	check(t, hosts[0].Close())
	if e := asker.next(t); e.Kind != cm.EventReply || e.Answer.Status != wire.SIDRReject {
		t.Errorf("%+v", e)
	}
}

// The number of the manager's handles is limited, however many requests it answers, and its counters are in the card's
// statistics.
func TestManagerHandlesAreBounded(t *testing.T) {
	n := newNetwork(t, 0)
	var many []netip.Addr
	for i := range 3 * ids.MaxHandles {
		many = append(many, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	server, client := newHost(t, n, "server", []netip.Addr{hostAddress(0)}), newHost(t, n, "client", many)
	a, b := newStation(t, server.Card), newStation(t, client.Card)
	a.listen(77)
	id := newCMID()
	for i, from := range many {
		b.ask(from.String(), "10.0.0.1", uint64(i), id)
		answered(t, id.next(t), 77, uint64(i))
	}
	for _, s := range []*station{a, b} {
		if used := s.device.own.Used(); used.AHs > ids.MaxHandles || used.QPs != 1 {
			t.Errorf("%+v", used)
		}
	}
	s, err := a.device.Statistics()
	check(t, err)
	seen := map[string]uint64{}
	for _, c := range s.All() {
		seen[fmt.Sprint(c.Place, " ", c.Name)] = c.Value
	}
	if n := uint64(len(many)); seen["CM sidr_requests"] != n || seen["CM sent"] != n {
		t.Errorf("%v", s)
	}
}
