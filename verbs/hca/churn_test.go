// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/vishvananda/netlink"
)

// Addresses that are added to and removed from another interface do not affect a card: its port stays up, nothing is
// dropped, no event occurs, and it queries nothing.
func TestChurnOnAnotherInterface(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	addLink(t, hosts.A, netlink.NewVeth(attrs("eth1", 1500)), true)
	l := newStationsOn(t, hosts)
	ah := l.a.ah("10.77.0.2")
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			address := fmt.Sprintf("10.88.%d.%d/32", i/200%200, i%200+1)
			if err := hosts.A.AddAddress("eth1", address); err != nil {
				done <- err
				return
			}
			if i >= 100 { // a hundred exist at any time
				i := i - 100
				link, err := hosts.A.Netlink().LinkByName("eth1")
				if err == nil {
					gone, _ := netlink.ParseAddr(fmt.Sprintf("10.88.%d.%d/32", i/200%200, i%200+1))
					err = hosts.A.Netlink().AddrDel(link, gone)
				}
				if err != nil {
					done <- err
					return
				}
			}
		}
	}()
	const messages = 2000
	for i := range messages {
		message(t, l.a, l.b, ah, []byte{byte(i)})
	}
	close(stop)
	check(t, <-done)
	if drops := l.a.drops(); len(drops) != 0 {
		t.Errorf("drops %v", drops)
	}
	l.a.noEvent()
}

// failing is a host whose queries can fail, and which counts them.
type failing struct {
	*memnet.Host
	fails         atomic.Bool
	mtu           atomic.Int32 // 0: the wire's
	ports, routes atomic.Int32
	fullSteering  // the station's
}

var errLook = errors.New("the look failed")

func (f *failing) Port() (network.Port, error) {
	f.ports.Add(1)
	if f.fails.Load() {
		return network.Port{}, errLook
	}
	status, err := f.Host.Port()
	if mtu := f.mtu.Load(); mtu != 0 {
		status.MTU = int(mtu)
	}
	return status, err
}

func (f *failing) Route(source, dest netip.Addr) (host.Route, error) {
	f.routes.Add(1)
	if f.fails.Load() {
		return host.Route{}, errLook
	}
	return f.Host.Route(source, dest)
}

func (f *failing) forgetCounts() {
	f.ports.Store(0)
	f.routes.Store(0)
}

// newFailingPair is newStillPair with such a host under the first station.
func newFailingPair(t *testing.T) (*wirePair, *failing) {
	t.Helper()
	n := newNetwork(t, 0)
	b := newHost(t, n, "b", addressesB, WithoutWorker())
	host, err := n.AddHost("a", addressesA...)
	check(t, err)
	f := &failing{Host: host}
	a, err := New(f, WithoutWorker())
	check(t, err)
	return &wirePair{newStation(t, a), newStation(t, b.Card)}, f
}

// A failed query is not evidence of a change: the port stays up and packets flow. The query is repeated, and then finds
// the changes.
func TestFailedLookIsNoNews(t *testing.T) {
	t.Parallel()
	w, f := newFailingPair(t)
	eventually(t, "the follower's first look", func() bool { return f.ports.Load() == 2 })
	ah := w.a.ah("10.0.0.2")
	f.fails.Store(true)
	f.mtu.Store(1500)
	w.a.device.follower.Missed()
	eventually(t, "several tries", func() bool { return f.ports.Load() > 4 })
	w.b.receive(0)
	w.a.post(w.a.send(1, ah, w.b))
	w.run()
	expect(t, w.b.completions(), ok(0))
	w.a.noEvent()
	if port := w.a.port(); port.State != verbs.PortActive {
		t.Errorf("port %+v", port)
	}
	f.fails.Store(false)
	w.a.expectEvents(mtuChange)
}

// A notification causes only the queries that it concerns: a route elsewhere causes none, a route to a destination
// causes one for its path, regardless of the number of handles.
func TestNewsCostWhatTheyConcern(t *testing.T) {
	w, f := newFailingPair(t)
	eventually(t, "the follower's first look", func() bool { return f.ports.Load() == 2 }) // the card's own came first
	for range 100 {
		w.a.ah("10.0.0.2")
	}
	// The follower may have queried routes once more, after its first query of the port.
	paths := len(w.a.device.paths.List())
	if n := f.routes.Load(); n > 2 || paths != 1 {
		t.Errorf("100 handles to one destination: %d route queries and %d paths, want 1 and 1", n, paths)
	}
	for _, row := range []struct {
		note func(n *pendingChanges)
		want int32
	}{
		{func(n *pendingChanges) { n.Route(netip.MustParsePrefix("192.0.2.0/24"), 0) }, 0},
		{func(n *pendingChanges) { n.Route(netip.MustParsePrefix("239.1.1.1/32"), 0) }, 0},
		{func(n *pendingChanges) { n.Neighbour(address("10.0.0.77")) }, 0},
		{func(n *pendingChanges) { n.Route(netip.MustParsePrefix("10.0.0.0/8"), 0) }, 1},
		{func(n *pendingChanges) { n.Route(netip.MustParsePrefix("0.0.0.0/0"), 0) }, 1},
		{func(n *pendingChanges) { n.Routes() }, 1},
		{func(n *pendingChanges) {
			for i := range 10 * 64 { // like a routing daemon that starts
				n.Route(netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 0}), 24), 0)
			}
		}, 1},
	} {
		f.forgetCounts()
		n := newPendingChanges()
		row.note(&n)
		_, err := w.a.device.follower.update(n.Take())
		check(t, err)
		if got := f.routes.Load(); got != row.want || f.ports.Load() != 0 {
			t.Errorf("%d route queries, want %d; %d port queries", got, row.want, f.ports.Load())
		}
	}
}

// Packets that an interface drops instead of sending are counted by name: a TAP whose program does not read accepts as
// many as its queue holds.
func TestInterfaceDropsAreCounted(t *testing.T) {
	t.Parallel()
	needs.TUN(t)
	host := labtest.New(t, "labtest-tap")
	tap := &netlink.Tuntap{LinkAttrs: attrs("eth0", 1500), Mode: netlink.TUNTAP_MODE_TAP, Queues: 1, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_MULTI_QUEUE}
	check(t, host.Do(func() error { return host.Netlink().LinkAdd(tap) }))
	t.Cleanup(func() { tap.Fds[0].Close() }) // no process reads from it
	check(t, host.Netlink().LinkSetUp(eth0(t, host)))
	check(t, host.AddAddress("eth0", "10.77.0.1/24"))
	setEntry(t, host, "10.77.0.2", net.HardwareAddr{2, 0, 0, 0, 0, 9}, netlink.NUD_PERMANENT)
	s := newStation(t, open(t, host))
	before := lostBy(t, host)
	ah := s.ah("10.77.0.2")
	const messages = 2000
	for range messages {
		s.post(s.send(1, ah, s))
		expect(t, s.wait(1), ok(1))
	}
	check(t, s.qp.Drain(guard(t)))
	// The host's own packets are dropped too.
	if refused := s.drops()["interface"]; refused < messages/2 || refused > lostBy(t, host)-before {
		t.Errorf("counted %d drops, the interface dropped %d", refused, lostBy(t, host)-before)
	}
}

// The peer's end goes down and up: every message is counted, whether the kernel reports the carrier loss or not, and
// messages flow immediately afterwards.
func TestCarrierLossIsCounted(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	ah := l.a.ah("10.77.0.2")
	message(t, l.a, l.b, ah, []byte("before"))
	lost := lostBy(t, l.A)
	for range 3 {
		l.balance(t, lost) // the kernel drops packets in flight without a count when the end goes down
		check(t, l.B.Netlink().LinkSetDown(eth0(t, l.B)))
		for range 200 {
			l.a.post(l.a.send(1, ah, l.b))
			l.a.wait(1)
		}
		check(t, l.B.Netlink().LinkSetUp(eth0(t, l.B)))
		flows(t, l, ah)
	}
	l.balance(t, lost)
}

// balance waits until each packet of a is counted: by b, as dropped by a, or only by the interface since it had lost so
// many. The last are few: frames that a poll(2) sent between their publishing and the kick.
func (l *stations) balance(t *testing.T, lost uint64) {
	t.Helper()
	var sum string
	defer func() { t.Log(sum) }()
	eventually(t, "matching counts", func() bool {
		all, err := l.b.device.Statistics()
		check(t, err)
		arrived := all.Engine.Received + all.Socket.RxDropped + all.Socket.RxRingFull
		for _, c := range all.Steering {
			if c.Name != bpf.Redirected.String() && c.Name != bpf.PassNotRoCE.String() {
				arrived += c.Value
			}
		}
		a := l.a.device.engine.Counters()
		unseen := lostBy(t, l.A) - lost - a.Drops[datapath.DropInterface]
		sum = fmt.Sprintf("%d sent, %d arrived, %d dropped, and at most %d counted only by the interface", a.Sent, arrived, a.Dropped(), unseen)
		missing := int(a.Sent - arrived - a.Dropped())
		return 0 <= missing && missing <= min(int(unseen), 6)
	})
}

// fullSteering accepts no more addresses.
type fullSteering struct{ full atomic.Bool }

func (s *fullSteering) AddAddress(netip.Addr) error {
	if s.full.Load() {
		return verbs.ErrLimit
	}
	return nil
}

// An address that XDP has no room for is not in the GID table, the port stays up, and adding it is retried.
func TestAddressThatIsNotSteered(t *testing.T) {
	t.Parallel()
	w, f := newFailingPair(t)
	d, steering := w.a.device, &f.fullSteering
	steering.full.Store(true)
	looks := f.ports.Load()
	check(t, f.SetAddresses(append(slices.Clone(addressesA), address("10.0.0.77"))...))
	d.follower.Port()
	eventually(t, "several tries", func() bool { return f.ports.Load() > looks+2 })
	if hasGID(w.a, "10.0.0.77") || w.a.port().State != verbs.PortActive {
		t.Errorf("an unsteered GID is listed, or the port is down: %+v", w.a.port())
	}
	steering.full.Store(false)
	eventually(t, "the GID", func() bool { return hasGID(w.a, "10.0.0.77") })
	w.a.expectEvents(gidChange)
}
