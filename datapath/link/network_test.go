// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
)

var (
	macA, macB, macC = wire.MAC{2, 0xA}, wire.MAC{2, 0xB}, wire.MAC{2, 0xC}
	macGroup         = wire.MAC{1, 0, 0x5e}
)

func ports(t *testing.T, n *Network, macs ...wire.MAC) (list []Port) {
	t.Helper()
	for _, mac := range macs {
		p := n.Port(mac)
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		list = append(list, p)
	}
	return list
}

// send commits a numbered frame, if there is room for it.
func send(p Port, to wire.MAC, number int) bool {
	frame := p.Reserve()
	if frame == nil {
		return false
	}
	copy(frame, to[:])
	binary.LittleEndian.PutUint32(frame[6:], uint32(number))
	p.Commit(10)
	return true
}

// receive receives all frames that have arrived, and returns their numbers.
func receive(p Port) (numbers []int) {
	for n := p.Receive(); n > 0; n = p.Receive() {
		for range n {
			numbers = append(numbers, int(binary.LittleEndian.Uint32(p.Next()[6:])))
		}
		p.Release()
	}
	return numbers
}

// Frames arrive in order and none is lost: a sender that is faster than the receiver finds no free frames and waits.
func TestInOrderWithoutLoss(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB)
	a, b := list[0], list[1]
	next, got := 0, 0
	for got < 10*portFrames {
		for send(a, macB, next) {
			next++
		}
		a.Flush()
		for send(a, macB, next) {
			next++
		}
		if a.Flush() && next-got > 2*portFrames {
			t.Fatalf("%d frames are in flight", next-got)
		}
		for _, number := range receive(b) {
			if number != got {
				t.Fatalf("frame %d came, want %d", number, got)
			}
			got++
		}
	}
}

// A frame arrives at the port with its destination MAC, or, if that is a multicast or unknown MAC, at all ports except
// the sender's.
func TestWhereFramesArrive(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB, macC)
	for i, row := range []struct {
		to   wire.MAC
		want []bool
	}{
		{macB, []bool{false, true, false}},
		{macC, []bool{false, false, true}},
		{macGroup, []bool{false, true, true}},
		{wire.MAC{2, 0xF}, []bool{false, true, true}},
	} {
		send(list[0], row.to, i)
		if !list[0].Flush() {
			t.Fatal("a frame is left")
		}
		for k, p := range list {
			if got := receive(p); slices.Contains(got, i) != row.want[k] {
				t.Errorf("to %v: port %d got %v", row.to, k, got)
			}
		}
	}
}

// A receiver without room delays a multicast frame for all receivers, and no port receives a frame twice.
func TestGroupWaitsForRoom(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB, macC)
	for i := range portFrames {
		send(list[1], macC, i)
	}
	list[1].Flush()
	send(list[0], macGroup, 4711)
	if list[0].Flush() || len(receive(list[1])) != 0 {
		t.Error("a group's frame was sent although one member had no room")
	}
	if got := receive(list[2]); len(got) != portFrames {
		t.Errorf("%d frames", len(got))
	}
	if !list[0].Flush() {
		t.Error("still blocked")
	}
	if b, c := receive(list[1]), receive(list[2]); !slices.Equal(b, []int{4711}) || !slices.Equal(c, []int{4711}) {
		t.Errorf("%v, %v", b, c)
	}
}

// Frames sent to or from a port that is down, or to a closed port, are dropped, and neither blocks senders.
func TestPortsThatAreDown(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB, macC)
	a, b := list[0], list[1]
	for _, down := range []Port{a, b} {
		down.SetUp(false)
		for i := range 3 * portFrames {
			if !send(a, macB, i) || !a.Flush() {
				t.Fatal("blocked")
			}
		}
		down.SetUp(true)
		if got := receive(b); got != nil {
			t.Errorf("%v arrived", got)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for i := range 3 * portFrames {
		if send(a, macB, i) && len(receive(list[2])) > 1 {
			t.Fatal("frames arrive twice")
		}
		a.Flush()
	}
	if got := receive(b); got != nil {
		t.Errorf("%v arrived at a closed port", got)
	}
}

// outcome sends a thousand frames through an impaired network, and returns the numbers of those that arrive.
func outcome(t *testing.T, seed uint64, i Impairment) ([]int, NetworkCounters) {
	t.Helper()
	n := NewNetwork(seed)
	list := ports(t, n, macA, macB)
	n.Impair(i)
	var got []int
	for number := range 1000 {
		send(list[0], macB, number)
		list[0].Flush()
		got = append(got, receive(list[1])...)
	}
	return got, n.Counters()
}

// With the same seed the same frames are lost and duplicated, with another seed other frames. Each lost frame is
// counted.
func TestImpairedBySeed(t *testing.T) {
	i := Impairment{Loss: 0.2, Duplication: 0.1}
	first, counted := outcome(t, 1, i)
	again, _ := outcome(t, 1, i)
	other, _ := outcome(t, 2, i)
	if !slices.Equal(first, again) {
		t.Error("the same seed gives a different result")
	}
	if slices.Equal(first, other) {
		t.Error("another seed gives the same result")
	}
	if uint64(len(first)) != 1000-counted.Lost+counted.Duplicated || counted.Lost < 100 || counted.Lost > 300 || counted.Duplicated < 40 || counted.Duplicated > 160 {
		t.Errorf("%d arrived, %+v", len(first), counted)
	}
	if got, counted := outcome(t, 3, Impairment{Loss: 1}); got != nil || counted.Lost != 1000 {
		t.Errorf("got %d frames, want 0: all are lost; %+v", len(got), counted)
	}
}

// The effects on the frames of a path do not depend on other paths, nor on other impairments.
func TestImpairedByPath(t *testing.T) {
	lost := func(i Impairment, others bool) (got []int) {
		n := NewNetwork(7)
		list := ports(t, n, macA, macB, macC)
		n.Impair(i)
		for number := range 1000 {
			if others {
				for _, from := range list[1:] {
					send(from, macA, number)
					from.Flush()
				}
				send(list[0], macC, number)
				receive(list[2])
				receive(list[0])
			}
			send(list[0], macB, number)
			list[0].Flush()
			for _, one := range receive(list[1]) {
				if !slices.Contains(got, one) {
					got = append(got, one)
				}
			}
		}
		return got
	}
	alone := lost(Impairment{Loss: 0.1}, false)
	if among := lost(Impairment{Loss: 0.1}, true); !slices.Equal(alone, among) {
		t.Error("other paths change the losses")
	}
	if doubled := lost(Impairment{Loss: 0.1, Duplication: 0.3}, false); !slices.Equal(alone, doubled) {
		t.Error("duplication changes the losses")
	}
	if len(alone) < 800 || len(alone) == 1000 {
		t.Errorf("%d of 1000 arrive", len(alone))
	}
}

// A reordered frame arrives after the next one; the last frame arrives too.
func TestReordering(t *testing.T) {
	n := NewNetwork(1)
	list := ports(t, n, macA, macB)
	n.Impair(Impairment{Reordering: 0.2})
	var got []int
	for number := range 1000 {
		send(list[0], macB, number)
		list[0].Flush()
		got = append(got, receive(list[1])...)
	}
	for deadline := time.Now().Add(waittest.Limit); len(got) < 1000 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		got = append(got, receive(list[1])...)
	}
	if slices.IsSorted(got) || n.Counters().Reordered < 100 {
		t.Errorf("in order; %+v", n.Counters())
	}
	if slices.Sort(got); len(got) != 1000 || got[999] != 999 {
		t.Errorf("%d frames", len(got))
	}
}

// With a rate each frame waits for the earlier ones.
func TestRate(t *testing.T) {
	p, now := &port{}, time.Now()
	if leaves := p.queueing(now, 0, 1000); leaves != now {
		t.Error(leaves)
	}
	for i := range 3 {
		if wait := p.queueing(now, 1e6, 1000).Sub(now); wait != time.Duration(i+1)*8*time.Millisecond {
			t.Error(wait)
		}
	}
}

// Frames stay in order with a rate, and ECN-capable frames that wait for long are marked.
func TestMark(t *testing.T) {
	n := NewNetwork(1)
	list := ports(t, n, macA, macB)
	n.Impair(Impairment{Rate: 100e6, Mark: 100 * time.Microsecond})
	const count = 100
	for i := range count {
		frame := list[0].Reserve()
		copy(frame, macB[:])
		copy(frame[6:], macA[:])
		copy(frame[12:], []byte{0x86, 0xDD, 0x60, byte(i%2) << 5}) // IPv6; ECT(0) every second
		frame[14+40] = byte(i)
		list[0].Commit(1000)
		list[0].Flush()
	}
	marked, next := 0, 0
	for deadline := time.Now().Add(waittest.Limit); next < count && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for range list[1].Receive() {
			frame := list[1].Next()
			if frame[14+40] != byte(next) {
				t.Fatalf("frame %d is %d", next, frame[14+40])
			}
			if frame[15]>>4&3 == 3 {
				marked++
			}
			next++
		}
		list[1].Release()
	}
	if got := n.Counters().Marked; next != count || marked == 0 || marked > count/2 || got != uint64(marked) {
		t.Errorf("%d frames, %d marked, %d counted", next, marked, got)
	}
}

// Delayed frames arrive later, also at a port whose worker sleeps, and with jitter in another order. Due frames that do
// not fit into the port wait.
func TestDelay(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB)
	n.Impair(Impairment{Delay: time.Hour})
	send(list[0], macB, 0)
	list[0].Flush()
	if got := receive(list[1]); got != nil {
		t.Errorf("%v, an hour too early", got)
	}
	n = NewNetwork(1)
	list = ports(t, n, macA, macB)
	n.Impair(Impairment{Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond})
	for number := range 100 {
		send(list[0], macB, number)
	}
	list[0].Flush()
	var got []int
	for deadline := time.Now().Add(waittest.Limit); len(got) < 100 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		got = append(got, receive(list[1])...)
	}
	inOrder := slices.IsSorted(got)
	slices.Sort(got)
	if len(got) != 100 || got[0] != 0 || got[99] != 99 || inOrder {
		t.Errorf("%d arrived, in order %v", len(got), inOrder)
	}
	n.Impair(Impairment{Duplication: 1})
	for number := range portFrames {
		send(list[0], macB, number)
	}
	list[0].Flush()
	if c, got := n.Counters(), receive(list[1]); c.Overflowed != 0 || len(got) != 2*portFrames || !slices.IsSorted(got) {
		t.Errorf("%+v, %v", c, got)
	}
	n.Impair(Impairment{})
	send(list[0], macB, 1)
	list[0].Flush()
	if got := receive(list[1]); len(got) != 1 {
		t.Errorf("got %v after the impairment", got)
	}
}

// Delivered frames are not overwritten: sender and receiver swap buffers, and the previous owner does not write to a
// buffer any more.
func TestBuffersChangeHands(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB)
	for round := range 3 * portFrames {
		want := bytes.Repeat([]byte{byte(round)}, 100+round)
		copy(want, macB[:])
		list[0].Commit(copy(list[0].Reserve(), want))
		list[0].Flush()
		next := list[0].Reserve()
		clear(next)
		if n := list[1].Receive(); n != 1 {
			t.Fatalf("round %d: %d frames", round, n)
		}
		if got := list[1].Next(); !bytes.Equal(got, want) {
			t.Fatalf("round %d: % x", round, got)
		}
		list[1].Release()
	}
}

// While many ports send, and ports are added and removed, the ports that stay lose no frames.
func TestPortsComeAndGo(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB, macC)
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for i := byte(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			p := n.Port(wire.MAC{2, 1, i})
			send(p, macC, 1<<20)
			p.Flush()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	count := waittest.Often(20_000)
	for _, p := range list[:2] {
		group.Go(func() {
			for i := 0; i < count; {
				if send(p, macC, i) {
					i++
				} else {
					time.Sleep(time.Microsecond)
				}
				p.Flush()
			}
			for !p.Flush() {
				time.Sleep(time.Microsecond)
			}
		})
	}
	seen := 0
	for seen < 2*count {
		for _, number := range receive(list[2]) {
			if number < 1<<20 {
				seen++
			}
		}
	}
	close(stop)
	group.Wait()
}

// TestBehind: Behind returns the frames that Next returns later.
func TestBehind(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB)
	const frames = 5
	for i := range frames {
		send(list[0], macB, i)
	}
	list[0].Flush()
	b := list[1]
	if n := b.Receive(); n != frames {
		t.Fatalf("%d frames", n)
	}
	for taken := range frames {
		for n := range frames - taken {
			if got := int(binary.LittleEndian.Uint32(b.Behind(n)[6:])); got != taken+n {
				t.Errorf("after %d, frame %d is %d behind", taken, got, n)
			}
		}
		if b.Behind(frames-taken) != nil {
			t.Errorf("after %d: got a frame behind the last", taken)
		}
		b.Next()
	}
	b.Release()
}
