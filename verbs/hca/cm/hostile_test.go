// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// stage is two managers with connections between them; bytes determine the actions of owners, network and time.
type stage struct {
	sides
	all  []*Connection // with an owner
	seen []flight      // sent messages, to be repeated or changed
}

func newStage(t testing.TB) *stage {
	s := &stage{sides: sides{TB: t, client: New(counting()), server: New(counting()), now: start}}
	var err error
	s.listener, err = s.server.Listen(ListenConfig{Service: connections7174, Connections: true, Backlog: 4, Owner: "listener"})
	check(t, err)
	return s
}

// play executes the action that three bytes describe.
func (s *stage) play(what, which, how byte) {
	switch what % 10 {
	case 0:
		c, err := s.client.Connect(s.now, connect(back, wire.QPN(how)+2, "active"))
		check(s, err)
		s.all = append(s.all, c)
	case 1:
		if c := s.listener.NextConnection(); c != nil {
			c.Owner = "passive"
			s.all = append(s.all, c)
		}
	case 2:
		s.now = s.now.Add(time.Duration(how) * time.Second / 8)
		s.client.Expire(s.now)
		s.server.Expire(s.now)
	case 3, 4, 5:
		s.arrive(int(which), how, what%10 == 5)
	default:
		if len(s.all) > 0 {
			s.act(s.all[int(which)%len(s.all)], how)
		}
	}
	s.collect()
}

// act makes an owner act, in any state of the connection.
func (s *stage) act(c *Connection, how byte) {
	switch how % 6 {
	case 0:
		_ = c.Accept(s.now, 2, ib.ConnParam{QPN: wire.QPN(how) + 300})
	case 1:
		_ = c.Confirm()
	case 2:
		_ = c.Reject(s.now, nil)
	case 3:
		c.Disconnect(s.now)
	case 4:
		_ = c.Establish()
	case 5:
		c.Close(s.now)
	}
}

// arrive delivers a message, possibly again, or with another attribute.
func (s *stage) arrive(which int, how byte, changed bool) {
	if len(s.seen) == 0 {
		return
	}
	f := s.seen[which%len(s.seen)]
	if changed {
		h := f.mad().Header()
		h.Attribute = wire.AttributeREQ + wire.Attribute(how%16)
		f.mad().PutHeader(h)
	}
	m := s.client
	if f.toServer {
		m = s.server
		before := m.Counters()
		s.toServer(f.Datagram)
		s.counts(m, &before)
		return
	}
	before := m.Counters()
	s.toClient(f.Datagram)
	s.counts(m, &before)
}

// counts checks that a message was counted once, by its outcome.
func (s *stage) counts(m *Manager, before *Counters) {
	if after := m.Counters(); after.received() != before.received()+1 {
		s.Errorf("a message was counted %d times", after.received()-before.received())
	}
}

// collect receives the sent messages, and checks the remaining state.
func (s *stage) collect() {
	for _, d := range sent(s.client) {
		s.seen = append(s.seen, flight{toServer: true, Datagram: d})
	}
	for _, d := range sent(s.server) {
		s.seen = append(s.seen, flight{Datagram: d})
	}
	told(s.client)
	told(s.server)
	s.consistent(s.client)
	s.consistent(s.server)
}

// consistent checks that a manager's state of connections is consistent.
func (s *stage) consistent(m *Manager) {
	timed := 0
	for id, c := range m.connections.byID {
		runs := c.timer.Runs()
		wants := c.state == stateREQSent || c.state == stateREPSent || c.state == stateDREQSent || c.state == stateTimewait || c.state == stateRejected
		if runs {
			timed++
		}
		orphan := c.place != nil
		waits := c.Owner == nil && c.state == stateREQReceived
		if id != c.local || runs != wants || orphan != (c.Owner == nil && !waits) || c.state == stateGone || wants == (c.message == nil) && c.state != stateTimewait {
			s.Fatalf("state %d: timer %v, orphan %v, owner %v, message %v", c.state, runs, orphan, c.Owner, c.message != nil)
		}
	}
	for key, c := range m.connections.byPeer {
		if m.connections.byID[c.local] != c || key.id != c.remote {
			s.Fatalf("a peer's connection in state %d is not there", c.state)
		}
	}
	for key, c := range m.connections.byQP {
		if m.connections.byID[c.local] != c || key.qpn != c.RemoteQPN || c.state >= stateTimewait {
			s.Fatalf("a queue pair's connection in state %d is not there", c.state)
		}
	}
	if timed != len(m.timers) || s.listener.Waiting() > 4 {
		s.Fatalf("%d timers of %d run; %d requests wait", timed, len(m.timers), s.listener.Waiting())
	}
}

// leave closes all owners; in time no state is left.
func (s *stage) leave() {
	for _, c := range s.all {
		c.Close(s.now)
	}
	s.listener.Close(s.now)
	for range 2 * (maxCMRetries + 2) {
		s.pass(2 * duration(mraTimeout))
		s.collect()
	}
	s.empty()
}

// TestHostileConnections plays random actions: in any order, nothing breaks and no state is left.
func TestHostileConnections(t *testing.T) {
	random := seeded(t)
	for range 300 {
		s := newStage(t)
		for range 200 {
			s.play(byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32()))
		}
		s.leave()
	}
}

// FuzzConnections does the same with the fuzzer's bytes.
func FuzzConnections(f *testing.F) {
	f.Add([]byte{0, 0, 1, 3, 0, 0, 1, 0, 0, 6, 1, 0, 3, 1, 0, 6, 0, 1, 3, 2, 0, 6, 0, 3, 3, 3, 0, 6, 1, 3})
	f.Fuzz(func(t *testing.T, moves []byte) {
		s := newStage(t)
		for ; len(moves) >= 3; moves = moves[3:] {
			s.play(moves[0], moves[1], moves[2])
		}
		s.leave()
	})
}

// TestWithdrawnLeavesNothing: a request that is withdrawn before it is dequeued leaves no state, whatever its reason,
// and displaces no other.
func TestWithdrawnLeavesNothing(t *testing.T) {
	s := newSides(t)
	for i := range 3 * maxKept {
		id := wire.CommID(i + 1)
		_, err := s.client.Connect(s.now, connect(back, wire.QPN(100+i), nil))
		check(t, err)
		req := one(t, sent(s.client))
		s.toServer(req)
		rej := wire.REJ{CommIDs: wire.CommIDs{Local: mad(req).REQ().LocalID}, Reason: wire.RejectStaleConnection}
		if id%2 == 0 {
			rej.Reason = wire.RejectTimeout
		}
		answer := make(wire.MAD, wire.MADLen)
		answer.PutREJ(mad(req).Header().TransactionID, &rej)
		s.server.Receive(s.now, there, answer)
		told(s.server)
		if all := &s.server.connections; len(all.byID)+len(all.byPeer)+len(all.byQP)+all.orphans.Len()+len(s.server.timers) > 0 {
			t.Fatalf("%+v, %d timers", all, len(s.server.timers))
		}
	}
	if n := s.listener.Waiting(); n != 0 || len(s.listener.senders) != 0 {
		t.Errorf("%d wait, %d senders", n, len(s.listener.senders))
	}
}
