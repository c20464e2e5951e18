// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

// TestNeighboursAge: a neighbour that replies is queried again before its reply expires, others are removed, in simulated time.
func TestNeighboursAge(t *testing.T) {
	t.Parallel()
	n := neighbours{all: map[netip.Addr]*neighbour{}, limit: 10}
	now := time.Hour
	one, _ := n.find(now, address(1), address(0))
	if !one.mustAsk(now) || one.mustAsk(now) {
		t.Fatal("a new neighbour is asked for once")
	}
	one.place = ud.Addr{QPN: 7}
	one.confirm(now)
	asked := 0
	for range 100 { // used and confirmed, for 100 s
		now += time.Second
		n.find(now, address(1), address(0))
		ask, lost := n.age(now)
		if asked += len(ask); len(ask) > 0 {
			one.confirm(now)
		}
		if lost > 0 || n.all[address(1)] == nil {
			t.Fatal("a neighbour that answers was forgotten")
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times in 100 s, want 3", asked)
	}
	one.waiting = [][]byte{nil, nil}
	silent, lost := 0, 0
	for ; n.all[address(1)] != nil; silent++ { // used, and silent
		now += time.Second
		if silent < 30 {
			n.find(now, address(1), address(0))
		}
		_, l := n.age(now)
		lost += l
	}
	if lost != 2 || silent > 40 {
		t.Errorf("forgotten after %d s, with %d packets", silent, lost)
	}
	two, _ := n.find(now, address(2), address(0))
	two.place = ud.Addr{QPN: 7}
	two.confirm(now)
	if n.age(now + 2*confirmedFor + 1); len(n.all) > 0 {
		t.Error("an idle neighbour is kept")
	}
}

// TestNeighboursAreBounded: the least recently used goes, with what waits for it.
func TestNeighboursAreBounded(t *testing.T) {
	t.Parallel()
	n := neighbours{all: map[netip.Addr]*neighbour{}, limit: 3}
	for i := range 3 {
		one, _ := n.find(0, address(i), address(100))
		one.waiting = make([][]byte, i)
	}
	n.find(0, address(1), address(100))
	lost := 0
	for i := range 3 {
		_, l := n.find(0, address(10+i), address(100))
		lost += l
	}
	if lost != 3 || len(n.all) != 3 || n.order.Len() != 3 {
		t.Errorf("%d lost, %d kept", lost, len(n.all))
	}
}

// TestPiecesAreBounded: begun packets of many sources, and of one for a long time.
func TestPiecesAreBounded(t *testing.T) {
	t.Parallel()
	r := reassembly{begun: map[origin]*partial{}}
	from := func(i int) origin { return origin{from: ud.Addr{QPN: verbs.QPN(i)}} }
	first, last := header{protocol: typeIPv4, more: true}, header{protocol: typeIPv4, piece: 1}
	for i := range 1000 {
		r.add(time.Duration(i), from(i), first, []byte{1})
	}
	if len(r.begun) != maxPartials {
		t.Errorf("%d begun packets are kept", len(r.begun))
	}
	if _, why := r.add(1000, from(0), last, []byte{2}); why != dropPiece {
		t.Error("the oldest was kept")
	}
	if p, why := r.add(1000, from(999), last, []byte{2}); why != dropNone || string(p) != "\x01\x02" {
		t.Error("the youngest was not kept", why)
	}
	r.add(1000, from(5), first, []byte{1})
	if _, why := r.add(1001+pieceLife, from(5), last, []byte{2}); why != dropPiece {
		t.Error("an old piece was taken")
	}
}

// heard is an interface that checks the packets written to it.
type heard struct {
	t *testing.T
	n int
}

func (h *heard) Name() string                              { return "fuzz" }
func (h *heard) ReadPackets([][]byte, []int) (int, error)  { return 0, nil }
func (h *heard) Prefixes() ([]netip.Prefix, error)         { return nil, nil }
func (h *heard) NextHop(to netip.Addr) (netip.Addr, error) { return to, nil }
func (h *heard) Start(int) error                           { return nil }
func (h *heard) Close() error                              { return nil }

func (h *heard) WritePacket(p []byte) error {
	ip, why := parsePacket(p)
	if why != dropNone || ip.from == address(1) || len(p) > longestPacket {
		h.t.Fatalf("% x came to the host: %v", p, dropNames[why])
	}
	h.n++
	return nil
}

// FuzzArrive: datagrams of any bytes. Each is delivered, kept, or dropped for a reason; no table grows.
func FuzzArrive(f *testing.F) {
	ask := resolution{opAsk, address(2), address(1)}
	f.Add(uint64(1), ask.message())
	f.Add(uint64(2), append([]byte{8, 0, 0, 0, 0x45, 0, 0, 20}, make([]byte, 16)...))
	f.Add(uint64(3), append([]byte{0x86, 0xdd, 0x80, 1, 0x60}, make([]byte, 39)...))
	f.Fuzz(func(t *testing.T, seed uint64, all []byte) {
		h := &heard{t: t}
		d := &Device{iface: h, neighbours: neighbours{all: map[netip.Addr]*neighbour{}, limit: 10}}
		d.own = own{prefixes: []netip.Prefix{netip.PrefixFrom(address(1), 16)}}
		r := reassembly{begun: map[origin]*partial{}}
		random := rand.New(rand.NewPCG(seed, 0))
		for range 4 { // the same bytes, cut anywhere
			n := random.IntN(len(all) + 1)
			m := ud.Message{Data: all[:n], From: ud.Addr{QPN: verbs.QPN(random.IntN(2))}}
			if random.IntN(2) == 0 {
				m.To = ud.Group(netip.MustParseAddr("239.1.1.1"))
			}
			before := h.n
			why := d.arrive(t.Context(), 0, &m, &r, d.ownNow())
			if why != dropNone && (h.n != before || dropNames[why] == "") {
				t.Fatalf("delivered, and dropped: %v %q", why, dropNames[why])
			}
		}
		if len(d.neighbours.all) > 0 || len(r.begun) > 4 {
			t.Fatal("a table has grown")
		}
	})
}

// FuzzResolution: encoding and parsing are inverse.
func FuzzResolution(f *testing.F) {
	for _, r := range []resolution{
		{opAsk, address(2), address(1)}, {opAnswer, netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fe80::2")},
	} {
		f.Add(r.message()[headerLen:])
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if r, ok := parseResolution(p); ok && fmt.Sprintf("%x", r.message()[headerLen:]) != fmt.Sprintf("%x", p) {
			t.Errorf("%x is %v, which is %x", p, r, r.message())
		}
	})
}

// TestGoldenResolution: a question, byte by byte.
func TestGoldenResolution(t *testing.T) {
	t.Parallel()
	r := resolution{opAsk, netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")}
	want := "0806" + "0000" + // EtherType, in one piece
		"0020" + "0800" + "00" + "04" + "0001" + // InfiniBand, IPv4, no hardware address, 4 bytes of IP, a question
		"0a000002" + "0a000001" // the sender, the target
	if got := fmt.Sprintf("%x", r.message()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
