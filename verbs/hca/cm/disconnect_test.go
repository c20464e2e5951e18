// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
)

// TestDisconnect: either side ends the connection, or both at once; each gets one event for the end, and one for the
// end of timewait.
func TestDisconnect(t *testing.T) {
	for name, row := range map[string]struct {
		act            func(*sides)
		active, server []EventKind
	}{
		"active": {func(s *sides) { s.active.Disconnect(s.now); s.exchange(); s.passive.Disconnect(s.now) },
			[]EventKind{EventDisconnected, EventTimewaitExit}, []EventKind{EventDisconnected, EventTimewaitExit}},
		"passive": {func(s *sides) { s.passive.Disconnect(s.now); s.exchange(); s.active.Disconnect(s.now) },
			[]EventKind{EventDisconnected, EventTimewaitExit}, []EventKind{EventDisconnected, EventTimewaitExit}},
		"both at once": {func(s *sides) { s.passive.Disconnect(s.now); s.active.Disconnect(s.now) },
			[]EventKind{EventDisconnected, EventTimewaitExit}, []EventKind{EventDisconnected, EventTimewaitExit}},
		"active closes": {func(s *sides) { s.active.Close(s.now); s.exchange(); s.passive.Disconnect(s.now) },
			nil, []EventKind{EventDisconnected, EventTimewaitExit}},
		"the other closes then": {func(s *sides) { s.active.Disconnect(s.now); s.exchange(); s.passive.Close(s.now) },
			[]EventKind{EventDisconnected, EventTimewaitExit}, []EventKind{EventDisconnected}},
		"both close": {func(s *sides) { s.active.Close(s.now); s.passive.Close(s.now) }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := established(t)
			row.act(s)
			s.exchange()
			if s.active.Agreed() || s.passive.Agreed() {
				t.Error("the connection has not ended")
			}
			s.pass(duration(ackTimeout))
			none(t, "answers", sent(s.client))
			s.tells(s.client, row.active...)
			s.tells(s.server, row.server...)
			s.empty()
			for _, c := range []*Connection{s.active, s.passive} {
				c.Disconnect(s.now)
				c.Close(s.now)
			}
			none(t, "messages of an ended connection", append(sent(s.client), sent(s.server)...))
		})
	}
}

// TestLostEnds: lost DREQs and DREPs are repeated, and repeated DREQs are answered again.
func TestLostEnds(t *testing.T) {
	s := established(t)
	s.active.Disconnect(s.now)
	dreq := one(t, sent(s.client))
	s.toServer(dreq)
	s.tells(s.server, EventDisconnected)
	s.toServer(dreq)
	none(t, "before the owner agrees", sent(s.server))
	s.passive.Disconnect(s.now)
	drep := one(t, sent(s.server))
	s.toServer(dreq)
	if again := one(t, sent(s.server)); again != drep {
		t.Errorf("%x, then %x", drep.MAD, again.MAD)
	}
	s.pass(duration(ackTimeout))
	s.tells(s.server, EventTimewaitExit)
	s.pass(s.active.timeout)
	if again := one(t, sent(s.client)); again != dreq {
		t.Errorf("%x, then %x", dreq.MAD, again.MAD)
	}
	s.toServer(dreq) // a side that has forgotten it
	s.exchange()
	s.tells(s.client, EventDisconnected)
}

// TestSilentPeer: a connection whose peer does not respond still ends, also without an owner.
func TestSilentPeer(t *testing.T) {
	for _, owned := range []bool{true, false} {
		s := established(t)
		if owned {
			s.active.Disconnect(s.now)
		} else {
			s.active.Close(s.now)
		}
		for range maxCMRetries + 1 {
			one(t, sent(s.client))
			s.pass(s.active.timeout)
		}
		none(t, "more tries", sent(s.client))
		s.pass(duration(ackTimeout))
		if owned {
			events := told(s.client)
			if len(events) != 2 || events[0].Kind != EventDisconnected || !events[0].Unanswered || events[1].Kind != EventTimewaitExit {
				t.Errorf("%+v", events)
			}
		} else {
			s.tells(s.client)
		}
		if len(s.client.connections.byID) != 0 {
			t.Error("the connection was not freed")
		}
		s.passive.Close(s.now)
		s.toClient(one(t, sent(s.server))) // a side that has forgotten it
		s.toServer(one(t, sent(s.client)))
		s.pass(time.Minute)
		s.empty()
	}
}

// TestStale: a peer that connects a queue pair that has a connection here has lost that connection: it ends, and the
// peer is rejected so that it retries.
func TestStale(t *testing.T) {
	s := established(t)
	other := newManager(t) // of the client's host, which has restarted
	again, err := other.Connect(s.now, connect(back, 11, "again"))
	check(t, err)
	s.toServer(one(t, sent(other)))
	answers := sent(s.server)
	if len(answers) != 2 || mad(answers[0]).REJ().Reason != wire.RejectStaleConnection || mad(answers[1]).Header().Attribute != wire.AttributeDREQ {
		t.Fatalf("%+v", answers)
	}
	for _, d := range answers {
		other.Receive(s.now, back, d.MAD[:])
	}
	if e := told(other); len(e) != 1 || e[0].Kind != EventRejected || e[0].Reason != wire.RejectStaleConnection {
		t.Errorf("%+v", e)
	}
	s.toServer(one(t, sent(other))) // the DREP
	s.tells(s.server, EventDisconnected)
	other.Expire(s.now.Add(duration(ackTimeout)))
	if e := told(other); len(e) != 1 || e[0].Kind != EventTimewaitExit {
		t.Errorf("after timewait: %+v", e)
	}
	again.Close(s.now)
	_, err = other.Connect(s.now, connect(back, 11, "and again")) // although timewait is not over
	check(t, err)
	s.toServer(one(t, sent(other)))
	s.take()
}

// TestForgedMessages: only messages from the connection's peer with both ids are accepted.
func TestForgedMessages(t *testing.T) {
	s := established(t)
	s.active.Disconnect(s.now)
	dreq := one(t, sent(s.client))
	for name, forge := range map[string]func(*Path, wire.MAD){
		"another host": func(p *Path, _ wire.MAD) { p.Remote[15]++ },
		"to another":   func(p *Path, _ wire.MAD) { p.Local[15]++ },
		"sender's id":  func(_ *Path, m wire.MAD) { m[wire.MADHeaderLen+3]++ },
		"our id":       func(_ *Path, m wire.MAD) { m[wire.MADHeaderLen+7]++ },
		"queue pair":   func(_ *Path, m wire.MAD) { m[wire.MADHeaderLen+10]++ },
	} {
		for _, attribute := range []wire.Attribute{wire.AttributeDREQ, wire.AttributeDREP, wire.AttributeREJ, wire.AttributeMRA, wire.AttributeRTU} {
			if attribute != wire.AttributeDREQ && name == "queue pair" {
				continue // other messages do not name it
			}
			came, forged := there, dreq
			binary.BigEndian.PutUint16(forged.mad()[16:], uint16(attribute)) // the ids stay where they are
			forge(&came, forged.mad())
			s.server.Receive(s.now, came, forged.MAD[:])
			if !s.passive.Agreed() {
				t.Fatalf("%s: attribute %v has ended the connection", name, attribute)
			}
		}
	}
	none(t, "events", told(s.server))
}

// TestOrphansAreBounded: connections without an owner are kept for a limited time and in a limited number.
func TestOrphansAreBounded(t *testing.T) {
	s := newSides(t)
	for i := range maxKept + 5 {
		_, err := s.client.Connect(s.now, connect(back, wire.QPN(100+i), nil))
		check(t, err)
		s.toServer(one(t, sent(s.client)))
		s.take()
		check(t, s.passive.Reject(s.now, []byte{1}))
		one(t, sent(s.server))
	}
	c := &s.server.connections
	if c.orphans.Len() != maxKept || len(c.byID) != maxKept || len(c.byPeer) != maxKept || len(c.byQP) != 0 || len(s.server.timers) != maxKept {
		t.Errorf("%d orphans, %d ids, %d peers, %d queue pairs, %d timers", c.orphans.Len(), len(c.byID), len(c.byPeer), len(c.byQP), len(s.server.timers))
	}
	s.server.Expire(s.now.Add(keepReply))
	if c.orphans.Len()+len(c.byID)+len(c.byPeer)+len(s.server.timers) != 0 {
		t.Error("some connections were not freed")
	}
}
