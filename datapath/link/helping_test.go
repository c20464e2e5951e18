package link

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
)

// TestPutOffWakes: a sender helps with a few short frames; for more, for long ones, and for those of who cannot be
// helped, a worker that sleeps is woken, once it is.
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
		t.Errorf("%d are to be helped that cannot be", len(owed))
	}
	receive(b)
	b.SetHelp(1000, func() bool { helped++; return done })
	for _, user := range []any{nil, 1001} { // nobody says who, or another user
		a.SetHelp(user, nil)
		if owed := sending(1, false); len(owed) != 0 || !woken() {
			t.Errorf("%v: %d are to be helped of another user", user, len(owed))
		}
		receive(b)
	}
	a.SetHelp(1000, nil)
	for _, done = range []bool{true, false} {
		owed := sending(fewFrames, false)
		if len(owed) != 1 || woken() {
			t.Fatalf("%d are to be helped; or it was woken", len(owed))
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
			t.Errorf("%d frames, long %v: %d are to be helped", frames, long, len(owed))
		}
		receive(b)
	}
	send(a, macB, 1) // nothing is put off any more
	a.Flush()
	if !woken() {
		t.Error("it is not woken")
	}
	receive(b)
	b.SetAsleep(false)
	if owed := sending(1, false); len(owed) != 0 || woken() {
		t.Error("one that is awake is to be helped, or is woken")
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

// TestHelpOfWhoIsAwake: one that has woken meanwhile, or was woken for more, runs its rounds itself.
func TestHelpOfWhoIsAwake(t *testing.T) {
	list := ports(t, NewNetwork(0), macA, macB, macC)
	a, b := list[0], list[1]
	a.SetHelp("one", nil)
	b.SetHelp("one", func() bool { t.Error("it is helped"); return true })
	b.SetAsleep(true)
	wakes := 0
	b.SetWake(func() { wakes++ })
	a.PutOffWakes()
	for i := range fewFrames + 1 { // to two in turns, so that each frame is noticed by itself
		send(a, macB, i)
		send(a, macC, i)
		a.Flush()
	}
	owed := a.TakeWakes()
	if len(owed) != 1 || wakes == 0 || !owed[0].Help() {
		t.Errorf("%d are to be helped, or none is woken", len(owed))
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
		t.Errorf("%d are to be helped", len(owed))
	}
}
