// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestKilledProgramLeavesItsGroups: the host remains a member until its last member program is killed. All resources of
// killed programs are freed, and other programs are not affected.
func TestKilledProgramLeavesItsGroups(t *testing.T) {
	w := newWorld(t, xdp, 1)
	w.startAll()
	w.rounds(1)
	onA := func(do func(c *child)) {
		for id := 0; id < len(w.programs); id += 2 {
			do(w.programs[id])
		}
	}
	if groups := w.hosts[0].memberships(t); len(groups) == 0 {
		t.Fatal("the host is not a member")
	}
	before := w.hosts[1].holds(t)
	onA(func(c *child) {
		_, err := c.query(order{Do: "wild", Seed: 1})
		check(t, err)
	})
	onA((*child).kill)
	w.hosts[0].holdsNothing(t)
	for id := 0; id < len(w.programs); id += 2 {
		w.startProgram(id)
	}
	w.rounds(1)
	w.hosts[1].holdsNoMore(t, before, w.hosts[1].holds(t))
	w.endAll()
}

// TestStoppedProgramsDoNotAffectOthers: some programs are stopped while others send to them and to the group. No
// messages of other programs are lost, nor messages for stopped programs that fit into their queues.
func TestStoppedProgramsDoNotAffectOthers(t *testing.T) {
	w := newWorld(t, xdp, queues)
	w.startAll()
	w.rounds(1)
	to := w.stabilise()
	going, stopped := w.programs[:6], w.programs[6:]
	for _, c := range stopped {
		check(t, c.Process.Signal(unix.SIGSTOP))
	}
	for range 2 {
		w.exchange(going, to)
	}
	for _, c := range stopped {
		check(t, c.Process.Signal(unix.SIGCONT))
	}
	for round := w.round - 1; round <= w.round; round++ {
		w.receive(stopped, order{Do: "round", Round: round, Expect: 2 * len(going) * burst})
	}
	w.rounds(2)
	for i := range w.hosts {
		w.addsUp(w.hosts[i].network, w.counters(i))
	}
	w.endAll()
}
