// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"slices"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

var group = wire.GID{0xff, 0x12, 15: 1}

// join returns a card of n engines. called counts the calls of each.
func join(t *testing.T, n int, wake func()) (all []*Peer, called []int) {
	t.Helper()
	card, called := new(Card), make([]int, n)
	for i := range n {
		p, err := card.Join(func() { called[i]++ }, wake)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		all = append(all, p)
	}
	return all, called
}

// take takes all packets, and returns the first bytes of their frames.
func take(p *Peer) (first []byte) {
	for packet := p.Take(); packet != nil; packet = p.Take() {
		first = append(first, packet.Frame[0])
	}
	return first
}

func TestRoute(t *testing.T) {
	all, _ := join(t, 3, nil)
	to := func(p *Peer, dest wire.GID, number wire.QPN) (places []int) {
		route := p.Route(number)
		if dest.IsMulticast() {
			route = p.RouteToGroup(dest)
		}
		for _, other := range route {
			places = append(places, other.Place())
		}
		return places
	}
	all[1].AddQP(0x10007)
	for _, p := range all {
		p.SetMembers(group, all[:2])
	}
	for name, c := range map[string]struct {
		from, want []int
		dest       wire.GID
		number     wire.QPN
	}{
		"an unknown number":   {from: []int{0, 1, 2}, number: 8},
		"another engine's":    {from: []int{0, 2}, number: 0x10007, want: []int{1}},
		"its own":             {from: []int{1}, number: 0x10007},
		"a group":             {from: []int{2}, dest: group, number: wire.QPNMulticast, want: []int{0, 1}},
		"a group, own member": {from: []int{0}, dest: group, number: wire.QPNMulticast, want: []int{1}},
		"another group":       {from: []int{2}, dest: wire.GID{0xff}, number: wire.QPNMulticast},
	} {
		for _, from := range c.from {
			if got := to(all[from], c.dest, c.number); !slices.Equal(got, c.want) {
				t.Errorf("%s, from engine %d: got %v, want %v", name, from, got, c.want)
			}
		}
	}
	all[1].RemoveQP(0x10007)
	all[2].SetMembers(group, nil)
	if got := append(to(all[0], wire.GID{}, 0x10007), to(all[2], group, wire.QPNMulticast)...); len(got) != 0 {
		t.Errorf("routes that were removed lead to %v", got)
	}
	if len(all[2].groups) != 0 {
		t.Error("an engine has a route to a group without members")
	}
}

// TestHand: each receiver has its own copy of the frame, in order. Only the first receiver counts the packet as
// received.
func TestHand(t *testing.T) {
	all, _ := join(t, 3, nil)
	frame := []byte{1}
	all[0].Hand(all[1:], false, Packet{Frame: frame, Sender: 7, Length: 1})
	frame[0] = 2
	all[0].Hand(all[1:], true, Packet{Frame: frame})
	for i, copied := range []bool{false, true} {
		p := all[1+i].Take()
		if p == nil || p.Frame[0] != 1 || p.Sender != 7 || p.Length != 1 || p.Copied != copied {
			t.Errorf("engine %d: the first packet is %+v", 1+i, p)
		}
		if p = all[1+i].Take(); p == nil || p.Frame[0] != 2 || p.Sender != 0 || !p.Copied {
			t.Errorf("engine %d: the second packet is %+v", 1+i, p)
		}
		if !all[1+i].Pending() && all[1+i].Take() != nil {
			t.Errorf("engine %d: a third packet", 1+i)
		}
	}
}

// TestFull: an engine that fills an inbox, or finds it full, is called when the inbox has room again.
func TestFull(t *testing.T) {
	all, called := join(t, 3, nil)
	all[1].AddQP(1)
	route := all[0].Route(1)
	for n := range Room {
		if route.Full() || all[0].Blocked() || all[0].Pending() {
			t.Fatalf("full with %d packets", n)
		}
		all[0].Hand(route, false, Packet{Frame: []byte{byte(n)}})
	}
	if !route.Full() || !all[0].Blocked() || !all[0].Pending() || all[2].Blocked() {
		t.Error("not full")
	}
	if first := take(all[1]); len(first) != Room || first[0] != 0 || first[Room-1] != 255 {
		t.Errorf("%d packets", len(first))
	}
	if !slices.Equal(called, []int{1, 0, 1}) {
		t.Errorf("called %v", called)
	}
	if route.Full() || all[0].Blocked() || all[0].Pending() {
		t.Error("still full")
	}
	all[0].Hand(route, false, Packet{Frame: []byte{0}})
	if take(all[1]); !slices.Equal(called, []int{1, 0, 1}) {
		t.Errorf("called again, though the inbox was not full: %v", called)
	}
}

// TestWake: a packet wakes the worker of an engine, by a descriptor or a function, only if the worker is asleep.
func TestWake(t *testing.T) {
	readable := func(fd int) bool {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, 0)
		return err == nil && n == 1
	}
	all, _ := join(t, 2, nil)
	fds := all[1].Descriptors()
	if len(fds) != 2 {
		t.Fatalf("descriptors %v", fds)
	}
	all[0].Hand(all[1:], false, Packet{Frame: []byte{0}})
	all[1].Relay([]byte{0})
	if readable(fds[0]) || readable(fds[1]) {
		t.Error("an awake engine was woken")
	}
	all[1].SetAsleep(true)
	all[0].Hand(all[1:], false, Packet{Frame: []byte{0}})
	all[1].Relay([]byte{0})
	if !readable(fds[0]) || !readable(fds[1]) {
		t.Error("a sleeping engine was not woken")
	}
	all[1].SetAsleep(false)
	if readable(fds[0]) || readable(fds[1]) {
		t.Error("still readable")
	}

	woken := 0
	all, _ = join(t, 2, func() { woken++ })
	all[1].SetAsleep(true)
	all[0].Hand(all[1:], false, Packet{Frame: []byte{0}})
	if woken != 1 || len(all[1].Descriptors()) != 0 {
		t.Errorf("woken %d times, descriptors %v", woken, all[1].Descriptors())
	}
	all[1].Close()
	if all[0].Hand(all[1:], false, Packet{Frame: []byte{0}}); woken != 1 {
		t.Error("woken after Close")
	}
}

// TestRelay: NextRelayed returns a frame until Relayed is called; a full inbox accepts no more frames.
func TestRelay(t *testing.T) {
	all, called := join(t, 2, nil)
	p := all[0]
	for n := range Room {
		if !p.Relay([]byte{byte(n)}) {
			t.Fatalf("frame %d has no room", n)
		}
	}
	if p.Relay([]byte{0}) {
		t.Error("an inbox accepted more frames than its capacity")
	}
	for n := range Room {
		for range 2 {
			if frame := p.NextRelayed(); frame == nil || frame[0] != byte(n) {
				t.Fatalf("frame %d is %v", n, frame)
			}
		}
		if given, done := p.RelayCounts(); given != Room || done != uint64(n) {
			t.Errorf("frame %d: %d given, %d done", n, given, done)
		}
		p.Relayed()
	}
	if p.NextRelayed() != nil || p.Pending() || !slices.Equal(called, []int{0, 1}) {
		t.Errorf("pending %v, called %v", p.Pending(), called)
	}
}

// TestAlone: the methods of a nil Peer, which the only engine of a card has, work.
func TestAlone(t *testing.T) {
	var p *Peer
	p.Close()
	if p.Place() != 0 || !p.Prefers(5) || p.Pending() || p.Descriptors() != nil {
		t.Error("a nil Peer is not alone")
	}
}
