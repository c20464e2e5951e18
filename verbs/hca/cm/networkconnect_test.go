// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// pair is a connection on a bad network: its ends, and the events of their owners.
type pair struct {
	active, passive *Connection
	told            [2]map[EventKind]int // the active end, the passive one
}

// end is the owner of an end of a pair.
type end struct {
	*pair
	side int
}

// meet makes the owners of connections establish them, and end them when both are established: one of the two, or both
// at once.
func (n *network) meet(pairs []pair) {
	for _, e := range append(told(n.server), told(n.client)...) {
		if e.Kind == EventRequest {
			n.acceptNext(pairs)
			continue
		}
		owner := e.Owner.(end)
		owner.told[owner.side][e.Kind]++
		switch e.Kind {
		case EventResponse:
			if err := owner.active.Confirm(); err != nil {
				panic(err)
			}
		case EventEstablished:
			who := n.IntN(3)
			for side, c := range []*Connection{owner.active, owner.passive} {
				if who == side || who == 2 {
					c.Disconnect(n.now)
				}
			}
		case EventDisconnected:
			[]*Connection{owner.active, owner.passive}[owner.side].Disconnect(n.now)
		}
	}
}

func (n *network) acceptNext(pairs []pair) {
	c := n.listener.NextConnection()
	number := binary.BigEndian.Uint32(c.Peer.PrivateData)
	p := &pairs[number]
	p.told[1][EventRequest]++
	p.passive, c.Owner = c, end{p, 1}
	if err := c.Accept(n.now, 2, ib.ConnParam{QPN: wire.QPN(5000 + number)}); err != nil {
		panic(err)
	}
}

// TestBadNetworkConnects: with loss, duplication and reordering each connection is established once and ended once at
// both ends, and no state of it is left.
func TestBadNetworkConnects(t *testing.T) {
	for _, row := range []struct {
		loss, twice float64
		delay       time.Duration
	}{{0, 0, time.Millisecond}, {0.1, 0.1, time.Second}, {0.2, 0.5, time.Second}, {0.2, 0, 100 * time.Millisecond}} {
		random := seeded(t)
		n := &network{
			Rand: random, now: start, client: New(random.Uint64), server: New(random.Uint64), loss: row.loss, twice: row.twice, delay: row.delay,
		}
		var err error
		n.listener, err = n.server.Listen(ListenConfig{Service: connections7174, Connections: true, Owner: "listener"})
		check(t, err)
		pairs := make([]pair, 200)
		n.owners = func() { n.meet(pairs) }
		for i := range pairs {
			p := &pairs[i]
			p.told = [2]map[EventKind]int{{}, {}}
			config := connect(back, wire.QPN(100+i), end{p, 0})
			config.Param.PrivateData = binary.BigEndian.AppendUint32(nil, uint32(i))
			p.active, err = n.client.Connect(n.now, config)
			check(t, err)
		}
		for n.act(); n.step(); {
		}
		for i := range pairs {
			wasTold(t, pairs[i].told[0], EventResponse, EventDisconnected, EventTimewaitExit)
			wasTold(t, pairs[i].told[1], EventRequest, EventEstablished, EventDisconnected, EventTimewaitExit)
		}
		(&sides{TB: t, client: n.client, server: n.server}).empty()
	}
}

// wasTold checks that there was one event of each kind, and none of others.
func wasTold(t *testing.T, told map[EventKind]int, kinds ...EventKind) {
	t.Helper()
	for _, kind := range kinds {
		if told[kind] != 1 {
			t.Errorf("%d events of kind %v", told[kind], kind)
		}
	}
	if len(told) != len(kinds) {
		t.Errorf("events %v, want one of each of %v", told, kinds)
	}
}

// TestConnectionFlood: with 100,000 forged requests a second, the kept state stays within the limits, and an honest
// sender's request gets in as fast as the owner dequeues requests.
func TestConnectionFlood(t *testing.T) {
	const rate, batch = 100_000, 100
	random := seeded(t)
	s := newSides(t)
	s.listener.Close(start)
	l, err := s.server.Listen(ListenConfig{Service: connections7174, Connections: true, Backlog: 128})
	check(t, err)
	forged := newManager(t)
	honest := s.ask()
	in := false
	for i := 0; !in && i < rate/batch; i++ { // a second
		s.now = start.Add(time.Duration(i) * batch * time.Second / rate)
		chance := random.IntN(batch)
		for k := range batch {
			if k == chance && i > rate/batch/4 && i%10 == 0 {
				s.toServer(honest)
			}
			sender := there.Remote
			copy(sender[13:], []byte{byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())})
			c, err := forged.Connect(s.now, connect(Path{Local: sender, Remote: there.Local}, wire.QPN(random.Uint32()&0xFFFFFF), nil))
			check(t, err)
			s.server.Receive(s.now, c.Path.reversed(), mad(one(t, sent(forged))))
			c.forget()
		}
		s.server.Expire(s.now)
		told(s.server)
		for range batch / 2 {
			if c := l.NextConnection(); c != nil {
				in = in || c.remote == s.active.local
				c.Close(s.now)
			}
		}
		sent(s.server)
		if all := &s.server.connections; len(all.byID) > maxKept+128 || l.Waiting() > 128 || len(all.byPeer) > maxKept+128 || len(all.byQP) > maxKept+128 {
			t.Fatalf("%d ids, %d peers, %d queue pairs, %d wait", len(all.byID), len(all.byPeer), len(all.byQP), l.Waiting())
		}
	}
	if !in {
		t.Error("the honest sender's request was not accepted")
	}
}
