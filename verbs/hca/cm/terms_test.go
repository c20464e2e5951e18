// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// asking makes the client send a request that is changed in flight.
func asking(t *testing.T, change func(*wire.REQ)) *sides {
	t.Helper()
	s := newSides(t)
	d := s.ask()
	req := mad(d).REQ()
	change(&req)
	d.mad().PutREQ(mad(d).Header().TransactionID, &req)
	s.toServer(d)
	s.take()
	return s
}

// TestPeersTimes: the times that a peer states are used within limits: the number and interval of REP repetitions, and
// the duration of timewait.
func TestPeersTimes(t *testing.T) {
	s := asking(t, func(r *wire.REQ) { r.LocalTimeout, r.MaxCMRetries, r.Primary.AckTimeout = 0, 3, 31 })
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	rep := one(t, sent(s.server))
	for range 3 {
		s.pass(duration(0) - 1)
		none(t, "a repetition within 67 ms", sent(s.server))
		s.pass(1)
		if again := one(t, sent(s.server)); again != rep {
			t.Error("another message")
		}
	}
	if duration(0) != 4096*time.Nanosecond<<14 || duration(31) != 4096*time.Nanosecond<<24 {
		t.Errorf("%v, %v", duration(0), duration(31))
	}
	s.toClient(rep)
	s.tells(s.client, EventResponse)
	check(t, s.active.Confirm())
	if s.active.Peer.PrivateData != nil {
		t.Error("private data is kept")
	}
	s.exchange()
	s.passive.Disconnect(s.now)
	s.exchange()
	s.active.Disconnect(s.now)
	s.exchange()
	s.tells(s.server, EventEstablished, EventDisconnected)
	s.pass(4096*time.Nanosecond<<maxTimewait - 1)
	s.tells(s.server)
	s.pass(1)
	s.tells(s.server, EventTimewaitExit)
}

// TestPeersRetries: a REP is repeated as often as the peer states.
func TestPeersRetries(t *testing.T) {
	s := asking(t, func(r *wire.REQ) { r.MaxCMRetries = 3 })
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	for range 1 + 3 {
		one(t, sent(s.server))
		s.tells(s.server)
		s.pass(s.passive.timeout)
	}
	s.tells(s.server, EventTimeout)
}

// TestStaleWhileEnding: a connection whose peer has sent a DREQ, and whose owner has not agreed yet, is also stale; the
// owner can still agree.
func TestStaleWhileEnding(t *testing.T) {
	s := established(t)
	s.active.Disconnect(s.now)
	s.exchange()
	s.tells(s.server, EventDisconnected)
	other := newManager(t)
	_, err := other.Connect(s.now, connect(back, 11, "again"))
	check(t, err)
	s.toServer(one(t, sent(other)))
	if m := mad(one(t, sent(s.server))); m.Header().Attribute != wire.AttributeREJ || m.REJ().Reason != wire.RejectStaleConnection {
		t.Errorf("%x", m)
	}
	s.passive.Disconnect(s.now)
	if m := mad(one(t, sent(s.server))); m.Header().Attribute != wire.AttributeDREP {
		t.Errorf("%x", m)
	}
}

// TestStaleReply: a REP of a queue pair that has a connection here is refused, and that connection ends.
func TestStaleReply(t *testing.T) {
	s := established(t)
	second, err := s.client.Connect(s.now, connect(back, 13, "second"))
	check(t, err)
	req := one(t, sent(s.client))
	other := newSides(t) // the server has begun anew
	other.toServer(req)
	other.take()
	check(t, other.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	s.toClient(one(t, sent(other.server)))
	answers := sent(s.client)
	if len(answers) != 2 || mad(answers[0]).REJ().Reason != wire.RejectStaleConnection || mad(answers[0]).REJ().Rejected != wire.AnsweredREP ||
		mad(answers[0]).REJ().CommIDs != (wire.CommIDs{Local: second.local, Remote: other.passive.local}) ||
		mad(answers[1]).Header().Attribute != wire.AttributeDREQ {
		t.Errorf("%+v", answers)
	}
	none(t, "a response", told(s.client))
}

// TestAlternatePath: alternate paths are refused, whether the connection exists or not.
func TestAlternatePath(t *testing.T) {
	s := established(t)
	lap := built(wire.AttributeLAP, nil)
	ids := wire.DREQ{CommIDs: wire.CommIDs{Local: s.active.local, Remote: s.passive.local}}
	var with Datagram
	with.mad().PutDREQ(77, &ids)
	copy(lap[wire.MADHeaderLen:], with.MAD[wire.MADHeaderLen:wire.MADHeaderLen+8])
	s.server.Receive(s.now, there, lap)
	if m := mad(one(t, sent(s.server))).APR(); m.Status != wire.APRUnsupported {
		t.Errorf("%+v", m)
	}
	if !s.passive.Agreed() {
		t.Error("the connection has ended")
	}
}

// TestEndWithoutAnOwner: a connection without an owner agrees to its end automatically.
func TestEndWithoutAnOwner(t *testing.T) {
	s := newSides(t)
	s.toServer(s.ask())
	s.take()
	s.passive.Owner = nil
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	s.exchange()
	check(t, s.active.Confirm())
	s.active.Disconnect(s.now)
	s.exchange()
	s.tells(s.client, EventResponse, EventDisconnected)
}

// TestEndOfARejected: the peer has confirmed a connection that this side has given up, and ends it: it gets a DREP.
func TestEndOfARejected(t *testing.T) {
	s := newSides(t)
	s.toServer(s.ask())
	s.take()
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12}))
	s.toClient(one(t, sent(s.server)))
	s.passive.Close(s.now)
	one(t, sent(s.server)) // the REJ is lost
	s.tells(s.client, EventResponse)
	check(t, s.active.Confirm())
	s.active.Disconnect(s.now)
	for _, d := range sent(s.client) {
		s.toServer(d)
	}
	for _, d := range sent(s.server) {
		s.toClient(d)
	}
	s.tells(s.client, EventDisconnected)
}

// TestRejectionIsRemembered: the rejection is kept as long as the peer repeats the request.
func TestRejectionIsRemembered(t *testing.T) {
	s := newSides(t)
	req := s.ask()
	s.toServer(req)
	s.take()
	check(t, s.passive.Reject(s.now, []byte("no")))
	rej := one(t, sent(s.server))
	s.server.Expire(s.now.Add(keepReply - 1))
	s.toServer(req)
	if again := one(t, sent(s.server)); again != rej {
		t.Errorf("%x, then %x", rej.MAD, again.MAD)
	}
}

// TestAnyAddressOfAVersion: a listener at 0.0.0.0 or :: accepts requests of its IP version only.
func TestAnyAddressOfAVersion(t *testing.T) {
	for any, other := range map[string]Path{"0.0.0.0": path("fd99::2", "fd99::3"), "::": there} {
		m := newManager(t)
		_, err := m.Listen(ListenConfig{Service: service, Address: netip.MustParseAddr(any)})
		check(t, err)
		m.Receive(start, other, mad(asked(t, Path{Local: other.Remote, Remote: other.Local})))
		if rep := mad(one(t, sent(m))).SIDRRep(); rep.Status != wire.SIDRReject {
			t.Errorf("%s: %+v", any, rep)
		}
	}
}

// TestDeadlineIsTheFirst: the deadline is the first of all timers.
func TestDeadlineIsTheFirst(t *testing.T) {
	m := newManager(t)
	l, err := m.Listen(ListenConfig{Service: service})
	check(t, err)
	late := ask(there, nil)
	late.Timeout = 2 * keepReply
	_, err = m.Ask(start, late)
	check(t, err)
	m.Receive(start, there, mad(asked(t, back)))
	check(t, l.Next().Reply(start, Answer{}))
	if at, some := m.Deadline(); !some || !at.Equal(start.Add(keepReply)) {
		t.Errorf("%v, %v", at, some)
	}
}
