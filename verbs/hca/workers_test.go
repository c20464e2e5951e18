// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// served is a station in a session, and the engine that serves it.
type served struct {
	*station
	engine *datapath.Engine
}

// sessionsOf returns sessions of a card, one for each worker.
func sessionsOf(t *testing.T, card *Card) (crew []*Session) {
	t.Helper()
	attr, err := provider.Do(card, provider.QueryDevice, provider.None{})
	check(t, err)
	for len(crew) < int(attr.Workers) {
		s := beside(t, card).(*Session)
		if !slices.ContainsFunc(crew, func(other *Session) bool { return other.entry.Engine() == s.entry.Engine() }) {
			crew = append(crew, s)
		}
	}
	return crew
}

// crewOf returns stations in sessions of a card, one for each worker.
func crewOf(t *testing.T, card *Card) (crew []served) {
	t.Helper()
	for _, s := range sessionsOf(t, card) {
		crew = append(crew, served{newStationIn(t, card, s), s.entry.Engine()})
	}
	return crew
}

// acrossFrom returns the place of the peer to which one of n stations sends: of the same worker for some, of another
// worker for others. A veth's packets arrive at the worker of the same place.
func acrossFrom(place, n int) int { return (n - place) % n }

// endAll ends flows between two cards, whose counters include all of the flows.
func endAll(flows []*flow) {
	for _, f := range flows {
		f.stop.Store(true)
	}
	for _, f := range flows {
		<-f.done
	}
	for _, f := range flows {
		f.end()
	}
}

// Two workers at each end, whose packets arrive on each other's queues, since a veth's packets arrive on the queue with
// the number of the sending queue: every packet is accounted for while queues are added and sockets replaced.
func TestWorkersFollowQueues(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t, lab.WithQueues(8))
	check(t, setQueues(t, hosts.A, 8, 2))
	check(t, setQueues(t, hosts.B, 2, 2))
	a, b := open(t, hosts.A, WithWorkers(2)), open(t, hosts.B, WithWorkers(2))
	from, to := crewOf(t, a), crewOf(t, b)
	flows := []*flow{startFlow(t, hosts.A, from[0].station, to[1].station, 64, 1000), startFlow(t, hosts.A, from[1].station, to[0].station, 64, 1000)}
	follow := func(what string, done func() bool) {
		t.Helper()
		eventually(t, what, done)
		for _, s := range to {
			before := s.engine.Counters().Delivered
			eventually(t, "messages", func() bool { return s.engine.Counters().Delivered > before+100 })
		}
	}
	follow("the beginning", func() bool { return true })
	for name, n := range byQueue(t, hosts.B) {
		if n == 0 && (strings.HasPrefix(name, "rx_queue_0_") || strings.HasPrefix(name, "rx_queue_1_")) {
			t.Errorf("no packets arrived on %s", name)
		}
	}
	for _, count := range []uint32{3, 5, 8} {
		check(t, setQueues(t, hosts.B, count, count))
		follow("sockets", func() bool { return socketsOf(b) == int(count) })
	}
	check(t, setQueues(t, hosts.A, 8, 8))
	setMTUs(t, hosts, 2200)
	follow("the MTU", func() bool {
		return from[0].port().ActiveMTU == verbs.MTU2048 && to[0].port().ActiveMTU == verbs.MTU2048 && to[0].port().State == verbs.PortActive
	})
	endAll(flows)
	sendFlows(t, hosts, to[1].station)
}

// TestFewerQueuesThanWorkers: there are as many workers as queues, and the log and the device report it.
func TestFewerQueuesThanWorkers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		receive, send uint32
		workers       uint8
	}{{3, 3, 3}, {2, 2, 2}, {3, 1, 1}, {1, 1, 1}} {
		hosts := labtest.Pair(t, lab.WithQueues(3))
		check(t, setQueues(t, hosts.B, 3, 1))
		check(t, setQueues(t, hosts.A, row.receive, row.send))
		var log logged
		card := open(t, hosts.A, WithWorkers(3), log.option())
		attr, err := provider.Do(card, provider.QueryDevice, provider.None{})
		check(t, err)
		if attr.Workers != row.workers || log.says("fewer workers than asked for") != (row.workers < 3) {
			t.Errorf("%+v: %d workers, log:\n%s", row, attr.Workers, log.text.String())
		}
		if row.workers > 1 && (attr.SendMode != string(SendAFXDP) || !strings.Contains(attr.SendReason, "workers")) {
			t.Errorf("%+v: got send mode %s because %q", row, attr.SendMode, attr.SendReason)
		}
	}
}

// Options that are not supported with several workers are refused.
func TestWorkersThatAreRefused(t *testing.T) {
	hosts := labtest.Pair(t, lab.WithQueues(2))
	for _, row := range []struct {
		option Option
		kind   error
		want   string
	}{
		{WithNetwork(NetworkUDP), verbs.ErrInvalid, "over UDP sockets has one"},
		{WithSendMode(SendTrains), verbs.ErrUnsupported, "trains need one worker"},
	} {
		untouched(t, hosts.A, "eth0", func() {
			_, err := Open("eth0", InNamespace(hosts.A.Path()), WithWorkers(2), row.option)
			refused(t, err, row.kind, row.want)
		})
	}
}

// A TAP's queues are its descriptors. Workers lose and regain theirs while all of them send, and afterwards each sends
// and receives.
func TestWorkersWithoutQueues(t *testing.T) {
	t.Parallel()
	needs.TUN(t)
	a, b := newTap(t, "10.77.0.1/24", 3), newTap(t, "10.77.0.2/24", 1)
	a.join(t, b)
	card, other := open(t, a.host, WithWorkers(3)), open(t, b.host)
	crew, senders, far := crewOf(t, card), crewOf(t, card), newStation(t, other)
	if len(crew) != 3 {
		t.Fatalf("got %d workers", len(crew))
	}
	for i, change := range []func(){
		func() {},
		func() { check(t, a.fds[2].Close()) },
		func() { check(t, a.fds[1].Close()) },
		func() { a.attach(t, b) },
		func() { a.attach(t, b) },
	} {
		var flows []*flow
		for _, s := range senders {
			flows = append(flows, startFlow(t, a.host, s.station, newStationIn(t, other, beside(t, other)), 500))
		}
		change()
		eventually(t, "sockets", func() bool { return socketsOf(card) == []int{3, 2, 1, 2, 3}[i] })
		for _, s := range senders {
			before := s.engine.Counters().Sent
			eventually(t, "sent frames", func() bool { return s.engine.Counters().Sent > before+500 })
		}
		for _, f := range flows {
			f.stop.Store(true)
			<-f.done
		}
		quiet(t, other)
		for j, s := range crew {
			for range 20 {
				message(t, s.station, far, s.ah("10.77.0.2"), pattern(500, j))
				message(t, far, s.station, far.ah("10.77.0.1"), pattern(900, j))
			}
		}
	}
	if port := far.port(); port.State != verbs.PortActive || crew[0].port().State != verbs.PortActive {
		t.Errorf("ports %+v, %+v", crew[0].port(), port)
	}
}

// quiet waits until no packets arrive at a card for a while: then a TAP's queues are empty, and will not overflow.
func quiet(t *testing.T, card *Card) {
	t.Helper()
	received, looks := uint64(0), 0
	eventually(t, "silence", func() bool {
		now := card.engine.Counters().Received
		if looks++; now != received {
			received, looks = now, 0
		}
		return looks == 50
	})
}

// tap is a host whose eth0 is a TAP.
type tap struct {
	host     *lab.Namespace
	fds      []*os.File
	carrying sync.WaitGroup
}

func newTap(t *testing.T, cidr string, queues int) *tap {
	t.Helper()
	host := labtest.New(t, "labtest-tap")
	link := &netlink.Tuntap{LinkAttrs: attrs("eth0", 1500), Mode: netlink.TUNTAP_MODE_TAP, Queues: queues, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_MULTI_QUEUE}
	check(t, host.Do(func() error { return host.Netlink().LinkAdd(link) }))
	check(t, host.Netlink().LinkSetUp(eth0(t, host)))
	check(t, host.AddAddress("eth0", cidr))
	return &tap{host: host, fds: link.Fds}
}

// join connects two TAPs.
func (a *tap) join(t *testing.T, b *tap) {
	t.Cleanup(func() {
		for _, fd := range append(a.fds, b.fds...) {
			_ = fd.Close() // some are closed twice
		}
		a.carrying.Wait()
		b.carrying.Wait()
	})
	for _, fd := range a.fds {
		a.carry(fd, b)
	}
	b.carry(b.fds[0], a)
}

// carry forwards frames from a queue to the first queue of another TAP.
func (a *tap) carry(from *os.File, to *tap) {
	into := to.fds[0]
	a.carrying.Go(func() {
		frame := make([]byte, 16<<10)
		for {
			n, err := from.Read(frame)
			if err != nil {
				return
			}
			_, _ = into.Write(frame[:n])
		}
	})
}

// attach adds a queue.
func (a *tap) attach(t *testing.T, to *tap) {
	fd, err := unix.Dup(attachTap(t, a.host, "eth0"))
	check(t, err)
	file := os.NewFile(uintptr(fd), "tap")
	a.fds = append(a.fds, file)
	a.carry(file, to)
}
