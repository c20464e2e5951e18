// SPDX-License-Identifier: Apache-2.0

package link

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
)

// TestPutOffWakes: a sender lists a receiver for help after a few short frames. For more frames or long frames, and for
// receivers that it cannot help, it wakes a sleeping worker.
func TestPutOffWakes(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB)
	a, b := list[0], list[1]
	helped, done, wakes := 0, true, 0
	b.SetWake(func() { wakes++ })
	woken := func() bool {
		awake := wakes > 0
		wakes = 0
		return awake
	}
	sending := func(frames int, long bool) []Port {
		a.PutOffWakes()
		for i := range frames {
			send(a, macB, i)
		}
		if long {
			sendLong(a, macB, 1)
		}
		a.Flush()
		return a.TakeWakes()
	}
	b.SetAsleep(true)
	if owed := sending(1, false); len(owed) != 0 || !woken() {
		t.Errorf("got %d ports to help, want 0: they have no help", len(owed))
	}
	receive(b)
	b.SetHelp(1000, func() bool { helped++; return done })
	for _, user := range []any{nil, 1001} { // no user, or another user
		a.SetHelp(user, nil)
		if owed := sending(1, false); len(owed) != 0 || !woken() {
			t.Errorf("%v: got %d ports of another user to help, want 0", user, len(owed))
		}
		receive(b)
	}
	a.SetHelp(1000, nil)
	for _, done = range []bool{true, false} {
		owed := sending(fewFrames, false)
		if len(owed) != 1 || woken() {
			t.Fatalf("got %d ports to help, or the worker was woken", len(owed))
		}
		before := helped
		if owed[0].Help() != done || helped != before+1 || woken() == done {
			t.Errorf("helped %d times; a worker is needed, or is not: %v", helped-before, done)
		}
		receive(b)
	}
	for _, long := range []bool{false, true} {
		frames := fewFrames + 1
		if long {
			frames = 0
		}
		if owed := sending(frames, long); len(owed) != 0 || !woken() {
			t.Errorf("%d frames, long %v: got %d ports to help", frames, long, len(owed))
		}
		receive(b)
	}
	send(a, macB, 1) // wakes are not delayed any more
	a.Flush()
	if !woken() {
		t.Error("the worker was not woken")
	}
	receive(b)
	b.SetAsleep(false)
	if owed := sending(1, false); len(owed) != 0 || woken() {
		t.Error("an awake worker is to be helped, or was woken")
	}
}

// TestHelpTwoHosts: each of several receivers is helped once.
func TestHelpTwoHosts(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB, macC)
	helped := map[int]int{}
	for i, p := range list[1:] {
		p.SetHelp("one", func() bool { helped[i]++; return true })
		p.SetAsleep(true)
	}
	list[0].SetHelp("one", nil)
	list[0].PutOffWakes()
	for i := range 2 {
		for _, to := range []wire.MAC{macB, macC} {
			send(list[0], to, i)
			list[0].Flush()
		}
	}
	for _, p := range list[0].TakeWakes() {
		p.Help()
	}
	if helped[0] != 1 || helped[1] != 1 {
		t.Errorf("%v", helped)
	}
}

// TestHelpOfWhoIsAwake: a worker that is awake, or was woken for more frames, runs its rounds itself; Help does
// nothing.
func TestHelpOfWhoIsAwake(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB, macC)
	a, b := list[0], list[1]
	a.SetHelp("one", nil)
	b.SetHelp("one", func() bool { t.Error("help was called"); return true })
	b.SetAsleep(true)
	wakes := 0
	b.SetWake(func() { wakes++ })
	a.PutOffWakes()
	for i := range fewFrames + 1 { // alternately to two receivers, so that noteArrived is called for each frame
		send(a, macB, i)
		send(a, macC, i)
		a.Flush()
	}
	owed := a.TakeWakes()
	if len(owed) != 1 || wakes == 0 || !owed[0].Help() {
		t.Errorf("got %d ports to help, or no worker was woken", len(owed))
	}
	receive(b)
	b.SetAsleep(false)
	b.SetAsleep(true)
	a.PutOffWakes()
	send(a, macB, 1)
	a.Flush()
	owed = a.TakeWakes()
	b.SetAsleep(false)
	if len(owed) != 1 || !owed[0].Help() {
		t.Errorf("got %d ports to help", len(owed))
	}
}
