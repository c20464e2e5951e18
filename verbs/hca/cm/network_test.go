// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
)

// network is a client and a server with a bad network between them, in simulated time.
type network struct {
	*rand.Rand
	now              time.Time
	client, server   *Manager
	listener         *Listener
	loss, twice      float64 // probabilities
	delay            time.Duration
	flying           []flight
	owners           func()         // actions of the owners of both managers
	asked, confirmed map[uint32]int // requests by number at the server, and replies at the client
}

type flight struct {
	at       time.Time
	toServer bool
	Datagram
}

// put loses a datagram, or delivers it once or twice, each after a random time.
func (n *network) put(toServer bool, d Datagram) {
	for copies := 1; copies > 0; copies-- {
		if n.Float64() < n.twice {
			copies++
		}
		if n.Float64() >= n.loss {
			n.flying = append(n.flying, flight{n.now.Add(time.Duration(n.Int64N(int64(n.delay)))), toServer, d})
		}
	}
}

// step advances to the next event; it returns false if there are no more.
func (n *network) step() bool {
	next, some := time.Time{}, false
	earlier := func(at time.Time, is bool) {
		if is && (!some || at.Before(next)) {
			next, some = at, true
		}
	}
	for _, f := range n.flying {
		earlier(f.at, true)
	}
	earlier(n.client.Deadline())
	earlier(n.server.Deadline())
	if !some {
		return false
	}
	n.now = next
	n.flying = slices.DeleteFunc(n.flying, func(f flight) bool {
		if f.at.After(n.now) {
			return false
		}
		if f.toServer {
			n.server.Receive(n.now, there, f.MAD[:])
		} else {
			n.client.Receive(n.now, back, f.MAD[:])
		}
		return true
	})
	n.client.Expire(n.now)
	n.server.Expire(n.now)
	n.act()
	return true
}

// act makes the owners act, and the network accept the sent messages.
func (n *network) act() {
	n.owners()
	for _, d := range sent(n.client) {
		n.put(true, d)
	}
	for _, d := range sent(n.server) {
		n.put(false, d)
	}
}

// inquire makes the server's owner answer each request, and the client's count the answers.
func (n *network) inquire() {
	for range told(n.server) {
		r := n.listener.Next()
		number := binary.BigEndian.Uint32(r.PrivateData[:])
		n.asked[number]++
		if err := r.Reply(n.now, Answer{QPN: wire.QPN(number)}); err != nil {
			panic(err)
		}
	}
	for _, e := range told(n.client) {
		if number := e.Owner.(uint32); e.Kind == EventReply && e.Answer.QPN == wire.QPN(number) {
			n.confirmed[number]++
		} else {
			n.confirmed[number] -= 1000
		}
	}
}

// TestBadNetwork: with loss, duplication and reordering each inquiry gets its own reply, and the server's owner gets
// each request once.
func TestBadNetwork(t *testing.T) {
	for _, row := range []struct {
		loss, twice float64
		delay       time.Duration
	}{{0, 0, time.Millisecond}, {0.1, 0.1, time.Second}, {0.2, 0.5, 10 * time.Second}, {0.2, 0, 5 * time.Second}} {
		const inquiries = 300
		random := seeded(t)
		n := &network{
			Rand: random, now: start, client: New(random.Uint64), server: New(random.Uint64),
			loss: row.loss, twice: row.twice, delay: row.delay, asked: map[uint32]int{}, confirmed: map[uint32]int{},
		}
		n.owners = n.inquire
		var err error
		n.listener, err = n.server.Listen(ListenConfig{Service: service, Address: netip.IPv4Unspecified()})
		check(t, err)
		for i := range uint32(inquiries) {
			config := ask(back, i)
			config.PrivateData = binary.BigEndian.AppendUint32(nil, i)
			_, err := n.client.Ask(n.now, config)
			check(t, err)
		}
		for n.act(); n.step(); {
		}
		for i := range uint32(inquiries) {
			if n.confirmed[i] != 1 || n.asked[i] != 1 {
				t.Errorf("%+v: inquiry %d: %d times asked, %d times answered", row, i, n.asked[i], n.confirmed[i])
			}
		}
		if len(n.client.inquiries)+len(n.client.timers)+len(n.server.requests)+n.server.kept.len() != 0 {
			t.Errorf("left: %d inquiries, %d timers, %d requests, %d kept", len(n.client.inquiries), len(n.client.timers), len(n.server.requests), n.server.kept.len())
		}
	}
}

// TestFlood: with 100,000 forged requests a second, the kept state stays within the limits, and an honest sender gets
// in: at once if the flood has one sender; if each forged request has another sender, as fast as the owner dequeues
// requests.
func TestFlood(t *testing.T) {
	const rate, batch = 100_000, 100 // per second; at the same time
	for name, row := range map[string]struct {
		senders uint32
		taken   int // of a batch
		tries   int // maximum of an honest sender
	}{
		"one sender":   {1, 10, 1},
		"many senders": {1 << 24, batch / 2, DefaultRetries + 1},
	} {
		random := seeded(t)
		m := New(random.Uint64)
		l, err := m.Listen(ListenConfig{Service: service, Backlog: 128})
		check(t, err)
		in, tries, now := false, 0, start
		for i := 0; !in && now.Sub(start) < time.Duration(row.tries)*DefaultTimeout; i++ {
			now = start.Add(time.Duration(i) * batch * time.Second / rate)
			honest := random.IntN(batch)
			for k := range batch {
				sender := netip.AddrFrom4([4]byte{10, byte(random.Uint32N(row.senders) >> 16), byte(random.Uint32N(row.senders) >> 8), byte(random.Uint32N(row.senders))})
				id, tid := random.Uint32(), random.Uint64()
				if due := start.Add(time.Duration(tries) * DefaultTimeout); k == honest && i > rate/batch/10 && !now.Before(due) {
					sender, id, tid = netip.MustParseAddr("10.99.0.3"), 1, 1
					tries++
				}
				came, mad := request(wire.GIDFromAddr(sender), id, tid)
				m.Receive(now, came, mad)
			}
			m.Expire(now)
			told(m)
			for range row.taken {
				if r := l.Next(); r != nil {
					in = in || r.key.tid == 1
					check(t, r.Reply(now, Answer{Status: wire.SIDRReject}))
				}
			}
			sent(m)
			if len(m.requests) > maxKept+128 || m.kept.len() > maxKept || l.Waiting() > 128 || len(l.senders) > 128 {
				t.Fatalf("%s: %d requests, %d kept, %d wait of %d senders", name, len(m.requests), m.kept.len(), l.Waiting(), len(l.senders))
			}
		}
		if !in || tries > row.tries {
			t.Errorf("%s: not in after %d tries", name, tries)
		}
	}
}
