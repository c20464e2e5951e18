// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTenPrograms runs ten programs of ten users on two services. They send to each other, to themselves and to a
// group. No message is lost, damaged or reordered, every message is counted, and all resources are freed when the
// programs end.
func TestTenPrograms(t *testing.T) {
	for name, row := range map[string]struct {
		networks [2]string
		workers  int
	}{
		"XDP": {xdp, 1}, "XDP, several workers": {xdp, queues}, "UDP": {udp, 1}, "XDP and UDP": {[2]string{xdp[0], udp[1]}, 2},
	} {
		t.Run(name, func(t *testing.T) { testTenPrograms(t, row.networks, row.workers) })
	}
}

func testTenPrograms(t *testing.T, networks [2]string, workers int) {
	w := newWorld(t, networks, workers)
	w.startAll()
	const rounds = 5
	w.rounds(rounds)
	var delivered uint64
	for i := range w.hosts {
		c := w.counters(i)
		w.addsUp(w.hosts[i].network, c)
		if n := c["socket rx_dropped"]; n != 0 {
			t.Errorf("sockets of %s have dropped %d packets", w.hosts[i].name, n)
		}
		delivered += c["engine delivered"]
	}
	if want := uint64(rounds * burst * (100 + 100)); delivered != want {
		t.Errorf("%d messages delivered, %d received", delivered, want)
	}
	w.endAll()
	for _, h := range w.hosts {
		h.holdsNothing(t)
		h.terminate(t)
		h.leftNothing(t)
	}
}

// TestRoundsAfterAChangeOfMTU: the MTU of the interface is reduced and restored while the service is stopped, so that
// the service reads the second change late. Rounds of long messages must wait for that.
func TestRoundsAfterAChangeOfMTU(t *testing.T) {
	w := newWorld(t, xdp, 1)
	w.startAll()
	w.rounds(1)
	h := w.hosts[0]
	link, err := h.eth0()
	check(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		check(t, h.Netlink().LinkSetMTU(link, 700))
		pause(r, 2*time.Millisecond)
		h.signal(unix.SIGSTOP)
		pause(r, 200*time.Millisecond)
		check(t, h.Netlink().LinkSetMTU(link, 1500))
		h.signal(unix.SIGCONT)
		w.rounds(1)
	}
	w.endAll()
}
