package chaos

import "testing"

// TestTenPrograms of ten users on two services: unicast to others on both hosts and to themselves, and
// a group. Nothing is lost or mixed up, every message is in the counters, and when the programs have
// gone, so has all that they had.
func TestTenPrograms(t *testing.T) {
	for name, networks := range map[string][2]string{"XDP": xdp, "UDP": udp, "XDP and UDP": {xdp[0], udp[1]}} {
		t.Run(name, func(t *testing.T) { testTenPrograms(t, networks) })
	}
}

func testTenPrograms(t *testing.T, networks [2]string) {
	w := newWorld(t, networks)
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
