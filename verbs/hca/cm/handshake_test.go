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

// TestStartingPSNs: a REQ and a REP state the first PSN that the peer has to use, as in the kernels' captures.
func TestStartingPSNs(t *testing.T) {
	messages := peerMessages(t, "rping")
	req, rep := messages[0].REQ(), messages[1].REP()
	begins := map[wire.QPN]wire.PSN{}
	for _, p := range peerPackets(t, "rping") {
		b := p.BTH()
		if op := b.Opcode().Operation(); op >= 0x0D && op <= 0x12 {
			continue // a response
		}
		if _, seen := begins[b.DestQP()]; !seen && b.DestQP() != wire.QPNGSI {
			begins[b.DestQP()] = b.PSN()
		}
	}
	if begins[req.LocalQPN] != req.StartingPSN || begins[rep.LocalQPN] != rep.StartingPSN {
		t.Errorf("%v, want %v of %v and %v of %v", begins, req.StartingPSN, req.LocalQPN, rep.StartingPSN, rep.LocalQPN)
	}
}

// TestConnectRetries: a REQ is repeated as often and as fast as by the kernel; then the peer gets a REJ.
func TestConnectRetries(t *testing.T) {
	s := newSides(t)
	first := s.ask()
	for range maxCMRetries {
		at, _ := s.client.Deadline()
		if at.Sub(s.now) != 4*1073741824*time.Nanosecond+2*1073741824*time.Nanosecond {
			t.Fatalf("a try of %v", at.Sub(s.now))
		}
		s.pass(at.Sub(s.now))
		if again := one(t, sent(s.client)); again != first {
			t.Error("a try differs")
		}
	}
	none(t, "events before the last try", told(s.client))
	s.pass(s.active.timeout)
	s.tells(s.client, EventTimeout)
	rej := mad(one(t, sent(s.client))).REJ()
	if rej.Rejected != wire.AnsweredNone || rej.Reason != wire.RejectTimeout || rej.CommIDs.Local != s.active.local {
		t.Errorf("%+v", rej)
	}
	s.empty()
	counted(t, s.client, map[Counter]uint64{Sent: 17, Retries: 15, Timeouts: 1})
}

// TestWithdrawn: a REJ from the sender of a request ends the request, whether it waits or was dequeued.
func TestWithdrawn(t *testing.T) {
	for _, taken := range []bool{false, true} {
		s := newSides(t)
		s.toServer(s.ask())
		if taken {
			s.take()
		}
		s.active.Close(s.now)
		s.exchange()
		if taken {
			if e := s.tells(s.server, EventRejected)[0]; e.Owner != "passive" || e.Reason != wire.RejectTimeout {
				t.Errorf("%+v", e)
			}
			refused(t, s.passive.Accept(s.now, 2, ib.ConnParam{}), verbs.ErrInvalid, "withdrawn")
		} else if s.tells(s.server, EventRequest, EventWithdrawn); s.listener.NextConnection() != nil || len(s.listener.senders) != 0 {
			t.Error("the request still waits")
		}
		none(t, "events of a closed connection", told(s.client))
		s.empty()
	}
}

// TestPostponed: while the program decides, a repeated REQ is answered by an MRA, which delays the next repetition,
// once for each try.
func TestPostponed(t *testing.T) {
	s := newSides(t)
	req := s.ask()
	s.toServer(req)
	none(t, "an answer to the first", sent(s.server))
	s.toServer(req)
	mra := one(t, sent(s.server))
	if m := mad(mra).MRA(); m.Received != wire.AnsweredREQ || m.ServiceTimeout != 24 || m.CommIDs.Remote != s.active.local {
		t.Errorf("%+v", m)
	}
	s.toClient(mra)
	want := s.now.Add(4096*time.Nanosecond<<24 + s.active.timeout)
	s.pass(time.Second)
	s.toClient(mra) // a duplicate
	if at, _ := s.client.Deadline(); at != want {
		t.Errorf("repetition due at %v, want %v", at, want)
	}
	s.pass(want.Sub(s.now))
	if again := one(t, sent(s.client)); again != req {
		t.Error("the REQ was not repeated")
	}
	s.toClient(mra)
	if at, _ := s.client.Deadline(); at != s.now.Add(want.Sub(start)) {
		t.Errorf("the second: repeated at %v", at)
	}
	s.take()
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	rep := one(t, sent(s.server))
	s.toClient(rep)
	s.tells(s.client, EventResponse)
	s.toClient(rep)
	mra = one(t, sent(s.client))
	if m := mad(mra).MRA(); m.Received != wire.AnsweredREP || m.CommIDs.Remote != s.passive.local {
		t.Errorf("%+v", m)
	}
	s.toServer(mra)
	if at, _ := s.server.Deadline(); at != s.now.Add(4096*time.Nanosecond<<24+s.passive.timeout) {
		t.Errorf("the REP is repeated at %v", at)
	}
	counted(t, s.client, map[Counter]uint64{ConnectionMessages: 3, ConnectionDuplicates: 2, Sent: 3, Retries: 1})
}

// TestLostAnswers: a lost message is recovered by a repetition of the message before it.
func TestLostAnswers(t *testing.T) {
	s := newSides(t)
	req := s.ask()
	s.toServer(req)
	s.take()
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	rep := one(t, sent(s.server)) // lost
	s.toServer(req)
	if again := one(t, sent(s.server)); again != rep {
		t.Error("the REP was not repeated for the REQ")
	}
	s.pass(s.passive.timeout)
	s.toClient(s.is(sent(s.server), rep.Path, mad(rep)))
	s.tells(s.client, EventResponse)
	check(t, s.active.Confirm())
	rtu := one(t, sent(s.client)) // lost
	s.toClient(rep)
	s.toServer(s.is(sent(s.client), rtu.Path, mad(rtu)))
	s.tells(s.server, EventEstablished)
	s.toServer(rtu)
	s.toServer(req)
	s.exchange()
	none(t, "events of duplicates", append(told(s.client), told(s.server)...))
}

// TestEstablishedByData: the first packet of the queue pair replaces a lost RTU.
func TestEstablishedByData(t *testing.T) {
	s := newSides(t)
	s.toServer(s.ask())
	s.take()
	refused(t, s.passive.Establish(), verbs.ErrInvalid, "not accepted")
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	s.exchange()
	check(t, s.active.Confirm())
	rtu := one(t, sent(s.client))
	check(t, s.passive.Establish())
	check(t, s.passive.Establish())
	s.toServer(rtu)
	s.tells(s.server, EventEstablished)
	if _, some := s.server.Deadline(); some {
		t.Error("the REP is repeated")
	}
}

// TestRejected: either side can reject, with private data, and rejects repeated messages again.
func TestRejected(t *testing.T) {
	data := bytes.Repeat([]byte{9}, RejectData)
	s := newSides(t)
	req := s.ask()
	s.toServer(req)
	s.take()
	refused(t, s.passive.Reject(s.now, make([]byte, RejectData+1)), verbs.ErrInvalid, "149 bytes")
	check(t, s.passive.Reject(s.now, data))
	rej := one(t, sent(s.server))
	s.toServer(req)
	if again := one(t, sent(s.server)); again != rej {
		t.Error("a repeated REQ is not rejected again")
	}
	s.toClient(rej)
	if e := s.tells(s.client, EventRejected)[0]; e.Reason != wire.RejectConsumer || !bytes.Equal(e.Peer.PrivateData, data) {
		t.Errorf("%+v", e)
	}
	s.pass(keepReply)
	s.empty()
	s.toServer(s.ask())
	s.take()
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	rep := one(t, sent(s.server))
	s.toClient(rep)
	s.tells(s.client, EventResponse)
	check(t, s.active.Reject(s.now, data))
	s.toServer(one(t, sent(s.client)))
	if e := s.tells(s.server, EventRejected)[0]; e.Owner != "passive" || !bytes.Equal(e.Peer.PrivateData, data) {
		t.Errorf("%+v", e)
	}
	s.toClient(rep)
	if m := mad(one(t, sent(s.client))).REJ(); m.Rejected != wire.AnsweredREP {
		t.Errorf("%+v", m)
	}
	s.pass(keepReply)
	s.empty()
}

// TestUnacceptable: requests that no listener can accept are rejected, with the reason.
func TestUnacceptable(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*wire.REQ)
		reason wire.RejectReason
	}{
		"another port":     {func(r *wire.REQ) { r.ServiceID++ }, wire.RejectServiceID},
		"UC":               {func(r *wire.REQ) { r.TransportService = 1 }, wire.RejectTransport},
		"another source":   {func(r *wire.REQ) { r.Primary.Local[15]++ }, wire.RejectPrimaryGID},
		"another path":     {func(r *wire.REQ) { r.Primary.Remote[15]++ }, wire.RejectPrimaryGID},
		"MTU 0":            {func(r *wire.REQ) { r.PathMTU = 0 }, wire.RejectMTU},
		"MTU beyond 4096":  {func(r *wire.REQ) { r.PathMTU = wire.MTU4096 + 1 }, wire.RejectMTU},
		"MTU 15":           {func(r *wire.REQ) { r.PathMTU = 15 }, wire.RejectMTU},
		"a false address":  {func(r *wire.REQ) { r.PrivateData[19]++ }, wire.RejectConsumer},
		"no address known": {func(r *wire.REQ) { r.PrivateData[0] = 7 }, wire.RejectConsumer},
	} {
		s := newSides(t)
		d := s.ask()
		req := mad(d).REQ()
		row.change(&req)
		d.mad().PutREQ(1, &req)
		s.toServer(d)
		s.exchange()
		if e := s.tells(s.client, EventRejected)[0]; e.Reason != row.reason {
			t.Errorf("%s: rejected with %v, want %v", name, e.Reason, row.reason)
		}
		none(t, name, told(s.server))
		s.empty()
	}
}

// TestListenersOfBothKinds: requests for connections do not reach listeners for datagrams, and vice versa.
func TestListenersOfBothKinds(t *testing.T) {
	s := newSides(t)
	datagrams, err := s.server.Listen(ListenConfig{Service: connections7174})
	check(t, err)
	_, err = s.server.Listen(ListenConfig{Service: connections7174, Connections: true})
	refused(t, err, verbs.ErrBusy, "listener")
	s.toServer(s.ask())
	if datagrams.Next() != nil {
		t.Error("a connection at the listener for datagrams")
	}
	s.take()
	s.listener.Close(s.now)
	config := ask(back, nil)
	config.Service = connections7174
	_, err = s.client.Ask(s.now, config)
	check(t, err)
	s.exchange()
	if datagrams.Next() == nil {
		t.Error("no request for datagrams")
	}
}

// TestConnectionBacklog: listeners queue as many requests for connections as for datagrams, and reject them on Close.
func TestConnectionBacklog(t *testing.T) {
	s := newSides(t)
	s.listener.Close(s.now)
	var err error
	s.listener, err = s.server.Listen(ListenConfig{Service: connections7174, Connections: true, Backlog: 20, Owner: "listener"})
	check(t, err)
	knocks := 0
	knock := func(sender byte) {
		knocks++
		from := Path{Local: wire.GIDFromAddr(netip.AddrFrom4([4]byte{10, 99, 1, sender})), Remote: there.Local}
		_, err := s.client.Connect(s.now, connect(from, wire.QPN(100+knocks), nil))
		check(t, err)
		s.server.Receive(s.now, from.reversed(), mad(one(t, sent(s.client))))
	}
	for range 100 {
		knock(1)
	}
	if n := len(told(s.server)); n != senderShare {
		t.Errorf("got %d waiting requests of one sender", n)
	}
	for sender := range byte(100) {
		knock(100 + sender)
	}
	if n := len(told(s.server)); n != 20-senderShare || len(s.server.connections.byID) != 20 {
		t.Errorf("got %d waiting requests of others; %d connections", n, len(s.server.connections.byID))
	}
	counted(t, s.server, map[Counter]uint64{ConnectionRequests: 20, ConnectionBacklogFull: 180})
	taken := s.listener.NextConnection()
	s.listener.Close(s.now)
	if n := len(sent(s.server)); n != 19 {
		t.Errorf("%d were rejected", n)
	}
	check(t, taken.Accept(s.now, 2, ib.ConnParam{QPN: 5}))
	if s.listener.NextConnection() != nil || len(s.listener.senders) != 0 {
		t.Error("requests wait at a closed listener")
	}
}
