// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
)

// sendLong commits a long frame filled with one byte value, if there is room for it.
func sendLong(p Port, to wire.MAC, fill byte) []byte {
	frame := p.ReserveLong()
	if frame == nil {
		return nil
	}
	for i := range frame {
		frame[i] = fill
	}
	copy(frame, to[:])
	p.Commit(len(frame))
	return bytes.Clone(frame)
}

// Long frames, also delayed ones, arrive complete and in order among short ones. Afterwards all are free again.
func TestLongFrames(t *testing.T) {
	for name, macs := range map[string][]wire.MAC{"two ports": {macA, macB}, "three": {macA, macB, macC}} {
		dest, n := macB, NewNetwork(0)
		list := ports(t, n, macs...)
		a, b := list[0], list[1]
		for _, i := range []Impairment{{}, {Delay: time.Microsecond}} {
			n.Impair(i)
			for round := range 2 * portFrames {
				long := sendLong(a, dest, byte(round))
				send(a, dest, round)
				if !a.Flush() {
					t.Fatalf("%s: the network is full", name)
				}
				for arrived := 0; arrived < 2; {
					for k := b.Receive(); k > 0; k-- {
						frame := b.Next()
						if isLong := arrived == 0; isLong && !bytes.Equal(frame, long) || !isLong && len(frame) != 10 {
							t.Fatalf("%s, %+v, round %d: got a frame of %d bytes, or different bytes", name, i, round, len(frame))
						}
						arrived++
					}
					b.Release()
				}
			}
		}
		if used := n.long.inUse.Load(); used != 0 {
			t.Errorf("%s: %d long frames were not returned", name, used)
		}
	}
}

// The number of long frames is limited. At the limit no more can be reserved until some are received, or their port is
// closed.
func TestLongFramesHaveABound(t *testing.T) {
	n := NewNetwork(0)
	macD := wire.MAC{2, 0xD}
	list := ports(t, n, macA, macC, macD)
	a := list[0]
	b := n.Port(macB)
	sent := 0
	for ; a.Longest() > 0; sent++ {
		if sendLong(a, []wire.MAC{macB, macC, macD}[sent%3], 1) == nil || !a.Flush() {
			t.Fatalf("no room after %d", sent)
		}
	}
	if sent != maxLong {
		t.Errorf("%d long frames, want %d", sent, maxLong)
	}
	for _, p := range []Port{b, list[1], list[2]} {
		receive(p)
	}
	if a.Longest() == 0 {
		t.Error("no long frame, though all were received")
	}
	sendLong(a, macB, 1)
	a.Flush()
	a.ReserveLong()
	a.Flush() // the reserved frame is not committed
	if used := n.long.inUse.Load(); used != 1 {
		t.Errorf("got %d long frames in use, want the one that has arrived", used)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if used := n.long.inUse.Load(); used != 0 {
		t.Errorf("got %d long frames in use after their port was closed", used)
	}
}

// A long frame for a port that no longer exists is dropped, not copied to all others.
func TestLongFrameForNobody(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB, macC)
	sendLong(list[0], wire.MAC{2, 0xD}, 1)
	send(list[0], macB, 7)
	if !list[0].Flush() || n.long.inUse.Load() != 0 {
		t.Errorf("%d long frames are in use", n.long.inUse.Load())
	}
	if got := receive(list[1]); !slices.Equal(got, []int{7}) || len(receive(list[2])) != 0 {
		t.Errorf("%v", got)
	}
}

// During a capture, or on an impaired network, there are no long packets.
func TestShortOnly(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB)
	expect := func(long bool) {
		t.Helper()
		if got := list[0].Longest(); got > 0 != long {
			t.Errorf("%d bytes at most", got)
		}
	}
	expect(true)
	n.Impair(Impairment{Loss: 0.1})
	expect(false)
	n.Impair(Impairment{})
	list[1].SetWatched(true)
	list[1].SetWatched(true)
	expect(false)
	list[1].SetWatched(false)
	expect(true)
	queues := n.Ports(macC, 2)
	for _, p := range queues {
		p.SetWatched(true)
		expect(false)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		expect(true)
	}
}
