// SPDX-License-Identifier: Apache-2.0

package link

import (
	"github.com/roced/roced/internal/waittest"
	"slices"
	"testing"
	"time"
)

// burst sends a number of frames that are received only later.
func burst(t *testing.T, from Port, count int) {
	t.Helper()
	for number := range count {
		if !send(from, macB, number) || !from.Flush() {
			t.Fatalf("blocked after %d frames", number)
		}
	}
}

// await receives frames until at least count have arrived.
func await(t *testing.T, p Port, count int) (numbers []int) {
	t.Helper()
	for deadline := time.Now().Add(waittest.Limit); len(numbers) < count; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d frames arrived", len(numbers), count)
		}
		numbers = append(numbers, receive(p)...)
	}
	return append(numbers, receive(p)...)
}

// A burst far longer than a port's capacity: all frames that are not lost arrive, in order, and the losses depend only
// on the seed.
func TestImpairedBurst(t *testing.T) {
	const count = 5000
	for name, i := range map[string]Impairment{
		"delay":       {Delay: 3 * time.Millisecond},
		"duplication": {Duplication: 0.5},
		"all twice":   {Duplication: 1, Delay: time.Millisecond},
		"loss":        {Loss: 0.3, Duplication: 0.2, Delay: time.Millisecond},
	} {
		run := func(seed uint64) ([]int, NetworkCounters) {
			n := NewNetwork(seed)
			list := ports(t, n, macA, macB)
			n.Impair(i)
			burst(t, list[0], count)
			c := n.Counters()
			return await(t, list[1], count-int(c.Lost)+int(c.Duplicated)), c
		}
		got, c := run(1)
		again, _ := run(1)
		if !slices.IsSorted(got) || !slices.Equal(got, again) {
			t.Errorf("%s: not in order, or not reproducible", name)
		}
		if len(got) != count-int(c.Lost)+int(c.Duplicated) || c.Overflowed != 0 {
			t.Errorf("%s: %d arrived, %+v", name, len(got), c)
		}
		if i.Loss == 0 && len(slices.Compact(got)) != count {
			t.Errorf("%s: some frames did not arrive", name)
		}
	}
}

// Frames sent after an impairment has ended do not overtake frames that wait for room.
func TestLateFramesGoFirst(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB)
	n.Impair(Impairment{Duplication: 1})
	burst(t, list[0], portFrames)
	n.Impair(Impairment{})
	send(list[0], macB, 4711)
	if list[0].Flush() {
		t.Error("a frame found room before the waiting ones")
	}
	var got []int
	for !list[0].Flush() {
		for range list[1].Receive() {
			got = append(got, int(list[1].Next()[6]))
		}
		list[1].Release()
	}
	if got = append(got, receive(list[1])...); len(got) != 2*portFrames+1 || got[2*portFrames] != 4711 {
		t.Errorf("%d frames, %v", len(got), got)
	}
}

// The number of frames that wait for a port is limited; further ones are counted.
func TestTooManyWait(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB)
	n.Impair(Impairment{Delay: time.Hour})
	burst(t, list[0], maxLate+10)
	if c := n.Counters(); c.Overflowed != 10 {
		t.Errorf("%+v", c)
	}
}

// A delayed frame wakes a sleeping worker when it is due.
func TestLateFrameWakes(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB)
	n.Impair(Impairment{Delay: time.Millisecond})
	woken := make(chan struct{}, 1)
	list[1].SetWake(func() { woken <- struct{}{} })
	list[1].SetAsleep(true)
	burst(t, list[0], 1)
	<-woken
	list[1].SetAsleep(false)
	if got := receive(list[1]); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// When a port goes down, frames that wait for room in it are dropped; frames already in the port stay.
func TestLateFramesOfAPortThatIsDown(t *testing.T) {
	n := NewNetwork(0)
	list := ports(t, n, macA, macB)
	n.Impair(Impairment{Duplication: 1})
	burst(t, list[0], 3*portFrames)
	list[1].SetUp(false)
	list[1].SetUp(true)
	if got := receive(list[1]); len(got) != portFrames {
		t.Errorf("%d frames", len(got))
	}
	n.Impair(Impairment{Delay: time.Nanosecond})
	burst(t, list[0], 10)
	await(t, list[1], 10)
}

// Without an impairment no memory is allocated.
func TestNoAllocation(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB)
	if n := testing.AllocsPerRun(1000, func() {
		send(list[0], macB, 1)
		list[0].Flush()
		list[1].Receive()
		list[1].Release()
	}); n != 0 {
		t.Errorf("got %v allocations per frame, want 0", n)
	}
}
