// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// crew is a card with several engines. Each has an end: a session with a queue pair.
type crew struct {
	testing.TB
	*Workers
	mac  wire.MAC
	gid  wire.GID
	ends []*end
}

// newCrew returns a card with n engines. number returns the number of an engine's queue pair: if this number modulo n
// differs from the index of the engine, the packets arrive at another engine.
func newCrew(t testing.TB, network *link.Network, host byte, n int, number func(i int) wire.QPN) *crew {
	t.Helper()
	c := &crew{TB: t, mac: wire.MAC{2, 0, 0, 0, 0, host}, gid: gidOf("10.0.0.0")}
	c.gid[15] = host
	var links []link.Link
	for _, p := range network.Ports(c.mac, n) {
		links = append(links, p)
	}
	var err error
	if c.Workers, err = NewWorkers(Config{MTU: wire.MTU1024}, links); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Do(func() { c.SetAddresses([]wire.GID{c.gid}) })
	for i := range n {
		c.addEnd(number(i))
	}
	return c
}

// closesCounted is a link that counts its Close calls.
type closesCounted struct {
	link.Link
	closed *int
}

func (l closesCounted) Close() error {
	*l.closed++
	return l.Link.Close()
}

// If the process has too few file descriptors, opening a card fails, whichever descriptor is missing, and leaks none.
func TestWorkersWithoutDescriptors(t *testing.T) {
	for _, n := range []int{1, 3} {
		refused := 0
		for more := uint64(0); ; more++ {
			ports := link.NewNetwork(1).Ports(wire.MAC{2}, n)
			closed := make([]int, n)
			var links []link.Link
			for i, p := range ports {
				links = append(links, closesCounted{p, &closed[i]})
			}
			before := descriptorsInUse(t)
			w, err := newWorkersBelow(t, nextDescriptor(t)+more, links)
			made := err == nil
			if made {
				if err = w.Close(); err != nil {
					t.Error(err)
				}
			} else if refused++; w != nil || !errors.Is(err, unix.EMFILE) {
				t.Fatalf("%d workers with %d descriptors: %v, %v", n, more, w, err)
			}
			for i, times := range closed {
				if times != 1 {
					t.Errorf("%d workers with %d descriptors: link %d was closed %d times", n, more, i, times)
				}
			}
			if now := descriptorsInUse(t); now != before {
				t.Fatalf("%d workers with %d descriptors: %d are left of %d", n, more, now, before)
			}
			if made {
				break
			}
		}
		if refused < n {
			t.Errorf("%d workers were refused %d times", n, refused)
		}
	}
}

func descriptorsInUse(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// nextDescriptor returns the number that the next descriptor will have.
func nextDescriptor(t *testing.T) uint64 {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	return uint64(fd)
}

// newWorkersBelow is NewWorkers with the given RLIMIT_NOFILE: descriptors have numbers below the limit.
func newWorkersBelow(t *testing.T, limit uint64, links []link.Link) (*Workers, error) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	return NewWorkers(Config{MTU: wire.MTU1024}, links)
}

// addEnd adds a session with a queue pair.
func (c *crew) addEnd(number wire.QPN) *end {
	e := &end{TB: c.TB, memory: make([]byte, endMemory), mac: c.mac, gid: c.gid, bell: ring.NewDoorbell(ring.Alloc(ring.DoorbellSize))}
	e.session = NewSession(e.bell)
	e.engine = c.Serve(e.session)
	e.engine.Do(func() {
		all := ib.AccessRemoteRead | ib.AccessRemoteWrite | ib.AccessRemoteAtomic
		e.session.SetMR(&region.MR{LKey: testKey(1), PD: testPD, Base: endBase, Memory: e.memory, Write: true, Remote: all})
	})
	e.makeQueues()
	e.qp.Number = number
	c.ends = append(c.ends, e)
	return e
}

// meetIn connects an end's queue pair to another's, with the given service, on a path in the given state.
func (c *crew) meetIn(service wire.Service, e, peer *end, state PathState) {
	e.c = NewConnection(service)
	e.c.PeerQPN, e.c.Peer, e.c.Path, e.c.Template = peer.qp.Number, peer.gid, new(Path), wire.NewTemplate(wire.Path{Source: e.gid, Dest: peer.gid})
	e.c.MTU, e.c.Access, e.c.MaxDestRDAtomic, e.c.MaxRDAtomic = wire.MTU1024, ib.AccessRemoteRead|ib.AccessRemoteWrite|ib.AccessRemoteAtomic, 4, 4
	e.c.MinRNRTimer, e.c.Timeout, e.c.RetryCnt, e.c.RNRRetry = 1, 14, 7, 7
	e.c.Responder.ExpectedPSN = 7
	c.Do(func() { c.SetPath(e.c.Path, PathAttr{State: state, DestMAC: peer.mac, FromMAC: e.mac}) })
	e.engine.Do(func() {
		e.qp.Serve(e.c)
		e.engine.AddQP(e.qp)
		for _, state := range []ib.QPState{ib.QPStateInit, ib.QPStateRTR, ib.QPStateRTS} {
			e.qp.SetPSN(7)
			e.qp.SetState(state)
		}
	})
}

// roundsUntil runs rounds of the cards' engines until done returns true.
func roundsUntil(t testing.TB, done func() bool, crews ...*crew) {
	t.Helper()
	for idle := 0; !done(); {
		worked := false
		for _, c := range crews {
			for _, e := range c.engines {
				some, _ := e.Round()
				worked = worked || some
			}
		}
		if idle++; worked {
			idle = 0
		}
		if idle > 50_000_000 {
			t.Fatal("no progress")
		}
	}
}

// balanced checks that every packet that an engine has received is counted exactly once.
func (c *crew) balanced() Counters {
	c.Helper()
	for i, e := range c.engines {
		if n := e.Counters(); n.Received+n.Copies != n.Delivered+n.dropped() {
			c.Errorf("engine %d: received %d, copies %d, delivered %d, dropped %v", i, n.Received, n.Copies, n.Delivered, named(&n))
		}
	}
	return c.Counters()
}

func straight(i int) wire.QPN { return wire.QPN(16 + i) }
func crossed(i int) wire.QPN  { return wire.QPN(17 + i) }

// TestWorkersConnections: connections of several programs transfer all messages in order. Their packets arrive at their
// own engines, arrive at other engines, or come from other engines of the same card.
func TestWorkersConnections(t *testing.T) {
	for _, number := range []func(int) wire.QPN{straight, crossed} {
		for _, local := range []bool{false, true} {
			for n := 2; n <= 3; n++ {
				t.Run(fmt.Sprintf("numbers from %d, local %v, %d engines", number(0), local, n), func(t *testing.T) {
					network := link.NewNetwork(1)
					a := newCrew(t, network, 1, n, number)
					if local {
						a.exchange(a, PathLocal, func(i int) (*end, *end) { return a.ends[i], a.ends[(i+1)%n] }, n-n%2)
						return
					}
					b := newCrew(t, network, 2, n, number)
					a.exchange(b, PathOpen, func(i int) (*end, *end) { return a.ends[i], b.ends[n-1-i] }, n)
				})
			}
		}
	}
}

// exchange has pairs of ends write and send to each other.
func (c *crew) exchange(other *crew, state PathState, pair func(i int) (a, b *end), count int) {
	c.Helper()
	const messages, length = 200, 20_000
	r := rand.New(rand.NewPCG(1, 2))
	step := 1
	if other == c {
		step = 2
	}
	for i := 0; i < count; i += step {
		a, b := pair(i)
		c.meetIn(wire.ServiceRC, a, b, state)
		other.meetIn(wire.ServiceRC, b, a, state)
		a.c.Timeout, b.c.Timeout = 0, 0 // no packet is lost, however slow the machine is
	}
	crews := []*crew{c, other}
	if other == c {
		crews = crews[:1]
	}
	for i := 0; i < count; i += step {
		a, b := pair(i)
		want := a.fill(r, 0, length)
		for m := range messages {
			b.postRecv(uint64(m), at(1<<20+m*length, length))
			w := to(ib.WRSend, 0)
			w.ID = uint64(m)
			a.post(w, ring.Atomic{}, at(0, length))
		}
		defer func() {
			for m := range messages {
				if got := b.memory[1<<20+m*length:][:length]; string(got) != string(want) {
					c.Errorf("pair %d: message %d differs from the sent one", i, m)
				}
			}
		}()
	}
	left := make([]int, count)
	roundsUntil(c, func() bool {
		over := true
		for i := 0; i < count; i += step {
			a, b := pair(i)
			for _, done := range append(a.poll(), b.poll()...) {
				if done.Status != ib.WCSuccess {
					c.Fatalf("%+v", done)
				}
				left[i]++
			}
			over = over && left[i] == 2*messages
		}
		return over
	}, crews...)
	for _, one := range crews {
		if n := one.balanced(); n.Dropped() != 0 {
			c.Errorf("dropped: %v", named(&n))
		}
	}
}

// TestCountersSum: the card's counters include every counter of an engine.
func TestCountersSum(t *testing.T) {
	var one, sum Counters
	fill := func(c *Counters, n uint64) {
		var set func(v reflect.Value)
		set = func(v reflect.Value) {
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					set(v.Field(i))
				}
			case reflect.Array:
				for i := range v.Len() {
					set(v.Index(i))
				}
			default:
				v.SetUint(n)
			}
		}
		set(reflect.ValueOf(c).Elem())
	}
	var want Counters
	fill(&one, 3)
	fill(&want, 6)
	sum.add(&one)
	if sum.add(&one); sum != want {
		t.Errorf("%+v", sum)
	}
}
