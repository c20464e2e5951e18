// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs/ud"
)

// world consists of two hosts and ten programs.
type world struct {
	*testing.T
	hosts  [2]*host
	folder string // of the programs' addresses
	faults chan string
	all    sync.WaitGroup // goroutines that collect faults
	round  uint32

	programs [10]*child
}

// Networks of the two hosts.
var (
	xdp = [2]string{"xdp", "xdp"}
	udp = [2]string{"udp", "udp"}
)

func newWorld(t *testing.T, networks [2]string, workers int) *world {
	t.Helper()
	pair := labtest.Pair(t, lab.WithQueues(queues+1))
	check(t, withQueues("eth0", pair.A, pair.B))
	w := &world{T: t, faults: make(chan string), folder: newFolder(t)}
	w.hosts[0] = newHost(t, pair.A, "a", networks[0], workers, "10.77.0.1/24", "fd77::1/64")
	w.hosts[1] = newHost(t, pair.B, "b", networks[1], workers, "10.77.0.2/24", "fd77::2/64")
	w.all.Go(w.collect)
	t.Cleanup(func() {
		for _, c := range w.programs {
			if c != nil && c.ProcessState == nil {
				c.kill()
			}
		}
		close(w.faults)
		w.all.Wait()
	})
	for _, h := range w.hosts {
		h.await(t)
	}
	return w
}

// newFolder creates a directory that all users can write to.
func newFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "roced-chaos")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(folder)) })
	check(t, os.Chmod(folder, 0o777))
	return folder
}

// maxFaults is the number of faults that are logged.
const maxFaults = 20

func (w *world) collect() {
	n := 0
	for fault := range w.faults {
		if n++; n <= maxFaults {
			w.Error(fault)
		}
	}
}

// hostOf returns the host whose service a program uses.
func (w *world) hostOf(id int) *host { return w.hosts[id%2] }

func (w *world) startProgram(id int) {
	w.Helper()
	w.programs[id] = startProgram(w, id, w.hostOf(id).socket(), w.folder, w.faults)
}

func (w *world) startAll() {
	w.Helper()
	for id := range w.programs {
		w.startProgram(id)
	}
}

// endAll makes all programs exit.
func (w *world) endAll() {
	w.Helper()
	for _, c := range w.programs {
		check(w, c.end())
	}
}

// queryAll sends an order to each program concurrently, and returns the answers.
func (w *world) queryAll(programs []*child, orderOf func(id int) order) []answer {
	w.Helper()
	var all sync.WaitGroup
	answers, failed := make([]answer, len(programs)), make([]error, len(programs))
	for i, c := range programs {
		all.Go(func() { answers[i], failed[i] = c.query(orderOf(c.id)) })
	}
	all.Wait()
	check(w, errors.Join(failed...))
	return answers
}

// stabilise waits until the services have read all changes of their hosts, and makes all programs connect. It
// returns the programs' addresses.
func (w *world) stabilise() (addresses []ud.Addr) {
	w.Helper()
	for _, h := range w.hosts {
		h.catchUp(w)
	}
	received := 0
	for _, a := range w.queryAll(w.programs[:], func(int) order { return order{Do: "calm"} }) {
		addresses = append(addresses, a.Addr)
		received += a.Received
	}
	w.Logf("the running programs have received %d messages outside of rounds", received)
	return addresses
}

// burst is the number of messages from a program to each destination in a round. All messages of a round fit into the
// receive queues.
const burst = 32

// rounds makes every program send to every program, including itself, and to the group, and checks that all messages
// arrive.
func (w *world) rounds(n int) {
	w.Helper()
	to := w.stabilise()
	for range n {
		w.exchange(w.programs[:], to)
	}
}

// exchange runs one round: programs send to these addresses and to the group, and receive each other's messages.
func (w *world) exchange(programs []*child, to []ud.Addr) {
	w.Helper()
	w.round++
	to = append(to[:len(to):len(to)], ud.Group(commonGroup))
	w.receive(programs, order{Do: "round", Round: w.round, To: to, Count: burst, Expect: 2 * len(programs) * burst})
}

// receive orders a round and checks that each program receives the expected messages.
func (w *world) receive(programs []*child, o order) {
	w.Helper()
	for i, a := range w.queryAll(programs, func(int) order { return o }) {
		if a.Received != o.Expect {
			w.Errorf("round %d: program %d has received %d messages of %d", o.Round, programs[i].id, a.Received, o.Expect)
		}
	}
	if w.Failed() {
		w.Fatalf("counters:\na: %s\nb: %s", w.counters(0), w.counters(1))
	}
}

// counted holds a service's counters by name.
type counted map[string]uint64

func (c counted) String() string {
	var parts []string
	for name, n := range c {
		if n > 0 {
			parts = append(parts, fmt.Sprint(name, " ", n))
		}
	}
	return strings.Join(parts, ", ")
}

// counters returns the counters of a host. Programs 0 and 1 are on the hosts of the same number.
func (w *world) counters(host int) counted {
	w.Helper()
	a, err := w.programs[host].query(order{Do: "counters"})
	check(w, err)
	all := counted{}
	for _, c := range a.Counters {
		all[c.Place+" "+c.Name] = c.Value
	}
	return all
}

// addsUp checks that every packet is counted once: the sockets or the engine count the packets that XDP has redirected,
// and the engine has delivered the packets that it received, or has dropped them by name.
func (w *world) addsUp(network string, c counted) {
	w.Helper()
	var dropped uint64
	for _, reason := range datapath.Reasons() {
		if !reason.Unsent() {
			dropped += c["engine drop_"+reason.String()]
		}
	}
	if received := c["engine received"] + c["engine copies"]; received != c["engine delivered"]+dropped {
		w.Errorf("%d received and copied, %d delivered and %d dropped: %s", received, c["engine delivered"], dropped, c)
	}
	if network == "udp" { // the kernel does not count packets for sockets
		return
	}
	inSockets := c["socket rx_dropped"] + c["socket rx_ring_full"] + c["socket malformed"]
	if fromWire := c["engine received"] - c["engine loopback"]; c["XDP redirected"] != fromWire+inSockets {
		w.Errorf("%d redirected, %d dropped by sockets and %d received by the engine: %s", c["XDP redirected"], inSockets, fromWire, c)
	}
}
