// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

var connections7174 = wire.ServiceIDFor(wire.PortSpaceTCP, 7174)

// connect returns the configuration of a connection along a path.
func connect(from Path, qpn wire.QPN, owner any) ConnectConfig {
	return ConnectConfig{
		Path: from, Service: connections7174, MTU: wire.MTU1024, Owner: owner,
		Source: netip.AddrPortFrom(from.Local.Addr(), 40000), Dest: netip.AddrPortFrom(from.Remote.Addr(), 7174),
		Param: ib.ConnParam{QPN: qpn, ResponderResources: 2, InitiatorDepth: 3, RetryCount: 7, RNRRetryCount: 6},
	}
}

// sides is two managers, and the two ends of a connection once they exist.
type sides struct {
	testing.TB
	client, server *Manager
	listener       *Listener
	active         *Connection
	passive        *Connection
	now            time.Time
}

func newSides(t testing.TB) *sides {
	s := &sides{TB: t, client: newManager(t), server: newManager(t), now: start}
	var err error
	s.listener, err = s.server.Listen(ListenConfig{Service: connections7174, Connections: true, Owner: "listener"})
	check(t, err)
	return s
}

// ask makes the client connect, and returns its REQ, which has not arrived.
func (s *sides) ask() Datagram {
	s.Helper()
	var err error
	s.active, err = s.client.Connect(s.now, connect(back, 11, "active"))
	check(s, err)
	return one(s, sent(s.client))
}

// take makes the server's owner dequeue the request.
func (s *sides) take() {
	s.Helper()
	if e := one(s, told(s.server)); e.Kind != EventRequest || e.Owner != "listener" {
		s.Fatalf("%+v", e)
	}
	s.passive = s.listener.NextConnection()
	s.passive.Owner = "passive"
}

func (s *sides) toServer(d Datagram) { s.server.Receive(s.now, there, d.MAD[:]) }
func (s *sides) toClient(d Datagram) { s.client.Receive(s.now, back, d.MAD[:]) }

// exchange delivers all messages until none are left.
func (s *sides) exchange() {
	for {
		up, down := sent(s.client), sent(s.server)
		if len(up)+len(down) == 0 {
			return
		}
		for _, d := range up {
			s.toServer(d)
		}
		for _, d := range down {
			s.toClient(d)
		}
	}
}

// established returns sides with an established connection.
func established(t testing.TB) *sides {
	s := newSides(t)
	s.toServer(s.ask())
	s.take()
	check(s, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12, ResponderResources: 4, InitiatorDepth: 1, RNRRetryCount: 5}))
	s.exchange()
	s.tells(s.client, EventResponse)
	check(s, s.active.Confirm())
	s.exchange()
	s.tells(s.server, EventEstablished)
	return s
}

// tells checks the kinds of the events.
func (s *sides) tells(m *Manager, kinds ...EventKind) (events []Event) {
	s.Helper()
	events = told(m)
	if len(events) != len(kinds) {
		s.Fatalf("events %+v, want %v", events, kinds)
	}
	for i, e := range events {
		if e.Kind != kinds[i] {
			s.Errorf("event %d is %+v, want %v", i, e, kinds[i])
		}
	}
	return events
}

// empty checks that no state of connections is left.
func (s *sides) empty() {
	s.Helper()
	for _, m := range []*Manager{s.client, s.server} {
		c := &m.connections
		if len(c.byID)+len(c.byPeer)+len(c.byQP)+c.orphans.Len()+len(m.timers) != 0 {
			s.Errorf("left: %d ids, %d peers, %d queue pairs, %d orphans, %d timers", len(c.byID), len(c.byPeer), len(c.byQP), c.orphans.Len(), len(m.timers))
		}
	}
}

// pass advances the time on both sides.
func (s *sides) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.client.Expire(s.now)
	s.server.Expire(s.now)
}

// TestConnectionsAreTheKernels: all messages of a connection are byte for byte those of two kernels, with the kernels'
// numbers.
func TestConnectionsAreTheKernels(t *testing.T) {
	for _, row := range []struct {
		capture    string
		port       uint16 // the client's
		class      uint8
		asked      ib.ConnParam
		answered   ib.ConnParam
		byServer   bool // it ends the connection
		serversTID uint64
	}{
		{
			capture: "rping", asked: ib.ConnParam{QPN: 0x21, ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7},
			answered: ib.ConnParam{QPN: 0x22, ResponderResources: 1, InitiatorDepth: 1, RNRRetryCount: 7},
		},
		{
			capture: "ucmatose", asked: ib.ConnParam{QPN: 0x23, ResponderResources: 1, InitiatorDepth: 1, RetryCount: 5},
			answered: ib.ConnParam{QPN: 0x24, ResponderResources: 1, InitiatorDepth: 1, RNRRetryCount: 9}, byServer: true, serversTID: 9420031753,
		},
	} {
		peer := peerMessages(t, row.capture)
		asked, rep := peer[0].REQ(), peer[1].REP()
		header, _ := wire.CMAddressOf(asked.PrivateData[:])
		clients := []uint64{peer[0].Header().TransactionID, uint64(asked.LocalID), uint64(asked.StartingPSN)}
		servers := []uint64{row.serversTID, uint64(rep.CommIDs.Local), uint64(rep.StartingPSN)}
		s := &sides{TB: t, client: New(listed(&clients)), server: New(listed(&servers)), now: start}
		var err error
		s.listener, err = s.server.Listen(ListenConfig{Service: asked.ServiceID, Connections: true})
		check(t, err)
		from := back
		from.HopLimit, from.FlowLabel = 64, FlowLabel(header.Source.Port(), asked.ServiceID.Port())
		s.active, err = s.client.Connect(start, ConnectConfig{
			Path: from, Service: asked.ServiceID, Source: header.Source, Dest: netip.AddrPortFrom(header.Destination, asked.ServiceID.Port()),
			GUID: asked.LocalCAGUID, MTU: wire.MTU1024, Param: row.asked, Owner: "active",
		})
		check(t, err)
		order := []func(){
			func() { s.toServer(s.is(sent(s.client), from, peer[0])) },
			func() {
				s.passive = s.listener.NextConnection()
				check(t, s.passive.Accept(start, rep.LocalCAGUID, row.answered))
				to := there
				to.HopLimit, to.FlowLabel = from.HopLimit, from.FlowLabel
				s.toClient(s.is(sent(s.server), to, peer[1]))
			},
			func() { check(t, s.active.Confirm()); s.toServer(s.is(sent(s.client), from, peer[2])) },
		}
		for _, step := range order {
			step()
		}
		first, then := s.active, s.passive
		if row.byServer {
			first, then = then, first
		}
		first.Disconnect(start)
		then.manager.Receive(start, then.from(), mad(s.is(sent(first.manager), first.Path, peer[3])))
		then.Disconnect(start)
		first.manager.Receive(start, first.from(), mad(s.is(sent(then.manager), then.Path, peer[4])))
		s.pass(time.Minute)
		s.empty()
	}
}

// from is the path of the messages of a connection's peer.
func (c *Connection) from() Path { return c.Path.answer() }

// reversed returns the path from the other side's view.
func (p Path) reversed() Path { return Path{Local: p.Remote, Remote: p.Local} }

func listed(numbers *[]uint64) func() uint64 {
	return func() (n uint64) { n, *numbers = (*numbers)[0], (*numbers)[1:]; return n }
}

// is checks the only message.
func (s *sides) is(all []Datagram, along Path, want wire.MAD) Datagram {
	s.Helper()
	d := one(s, all)
	along.FlowLabel = 0
	if !bytes.Equal(d.MAD[:], want) || d.Path != along {
		s.Errorf("along %+v\n%x, want along %+v\n%x", d.Path, d.MAD, along, want)
	}
	return d
}

// TestTerms: both sides set their queue pairs to matching parameters.
func TestTerms(t *testing.T) {
	s := newSides(t)
	config := connect(back, 11, "active")
	config.Path.TrafficClass, config.Path.FlowLabel, config.Path.HopLimit = 0x68, 77, 9
	config.Param.PrivateData = bytes.Repeat([]byte{7}, ConnectData)
	config.Param.FlowControl, config.Param.SRQ = true, true
	var err error
	s.active, err = s.client.Connect(s.now, config)
	check(t, err)
	if s.active.Agreed() {
		t.Error("agreed before the peer has answered")
	}
	s.toServer(one(t, sent(s.client)))
	s.take()
	asked := s.passive.Peer
	if !bytes.Equal(asked.PrivateData, config.Param.PrivateData) || s.passive.Source != config.Source || s.passive.Dest != config.Dest {
		t.Errorf("%+v", s.passive)
	}
	asked.PrivateData = nil
	if want := (ib.ConnParam{QPN: 11, ResponderResources: 3, InitiatorDepth: 2, RetryCount: 7, RNRRetryCount: 6, FlowControl: true, SRQ: true}); !same(asked, want) {
		t.Errorf("request: got %+v, want %+v", asked, want)
	}
	want := Terms{
		Path: Path{Local: there.Local, Remote: there.Remote, TrafficClass: 0x68, FlowLabel: 77, HopLimit: 9}, MTU: wire.MTU1024, RemoteQPN: 11,
		SQPSN: s.active.RQPSN, RQPSN: s.passive.RQPSN, AckTimeout: 19, RetryCount: 7, RNRRetryCount: 6, ResponderResources: 3, InitiatorDepth: 2,
	}
	if !s.passive.Agreed() || s.passive.Terms != want {
		t.Errorf("terms: got %+v, want %+v", s.passive.Terms, want)
	}
	refused(t, s.passive.Accept(s.now, 2, ib.ConnParam{PrivateData: make([]byte, AcceptData+1)}), verbs.ErrInvalid, "197 bytes")
	refused(t, s.passive.Confirm(), verbs.ErrInvalid, "not accepted")
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12, ResponderResources: 4, InitiatorDepth: 1, RNRRetryCount: 5, PrivateData: bytes.Repeat([]byte{8}, AcceptData)}))
	s.exchange()
	e := s.tells(s.client, EventResponse)[0]
	if e.Owner != "active" || !bytes.Equal(e.Peer.PrivateData, bytes.Repeat([]byte{8}, AcceptData)) {
		t.Errorf("%+v", e)
	}
	e.Peer.PrivateData = nil
	if want := (ib.ConnParam{QPN: 12, ResponderResources: 1, InitiatorDepth: 3, RNRRetryCount: 5}); !same(e.Peer, want) {
		t.Errorf("response: got %+v, want %+v", e.Peer, want)
	}
	want = Terms{
		Path: config.Path, MTU: wire.MTU1024, RemoteQPN: 12, SQPSN: s.passive.RQPSN, RQPSN: s.active.RQPSN,
		AckTimeout: 19, RetryCount: 7, RNRRetryCount: 5, ResponderResources: 1, InitiatorDepth: 3,
	}
	if !s.active.Agreed() || s.active.Terms != want {
		t.Errorf("terms: got %+v, want %+v", s.active.Terms, want)
	}
	refused(t, s.passive.Accept(s.now, 2, ib.ConnParam{}), verbs.ErrInvalid, "answered already")
	refused(t, s.passive.Reject(s.now, nil), verbs.ErrInvalid, "has been answered")
}

func same(a, b ib.ConnParam) bool {
	return a.QPN == b.QPN && a.ResponderResources == b.ResponderResources && a.InitiatorDepth == b.InitiatorDepth &&
		a.FlowControl == b.FlowControl && a.RetryCount == b.RetryCount && a.RNRRetryCount == b.RNRRetryCount && a.SRQ == b.SRQ &&
		bytes.Equal(a.PrivateData, b.PrivateData)
}

// TestConnectRefuses: parameters that no request can carry are rejected.
func TestConnectRefuses(t *testing.T) {
	m, config := newManager(t), connect(back, 11, nil)
	config.Param.PrivateData = make([]byte, ConnectData+1)
	_, err := m.Connect(start, config)
	refused(t, err, verbs.ErrInvalid, "57 bytes")
	_, err = m.Connect(start, ConnectConfig{})
	refused(t, err, verbs.ErrInvalid, "one IP version")
	if len(m.connections.byID) != 0 {
		t.Error("the connection was not freed")
	}
}
