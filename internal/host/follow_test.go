// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// setMTU sets the MTU of an interface, which causes a change of its port.
func setMTU(t *testing.T, ns *lab.Namespace, name string, mtu int) {
	t.Helper()
	link, err := ns.Netlink().LinkByName(name)
	check(t, err)
	check(t, ns.Netlink().LinkSetMTU(link, mtu))
}

// TestFollowerReportsItsInterfaceOnly: changes of the followed interface are reported, changes of others are not.
func TestFollowerReportsItsInterfaceOnly(t *testing.T) {
	ns := twoHosts(t)
	_, h := follow(t, ns, "eth0")
	neighbour := func(dev, ip string) {
		check(t, ns.Netlink().NeighSet(&netlink.Neigh{
			LinkIndex: index(t, ns, dev), IP: net.ParseIP(ip), State: netlink.NUD_PERMANENT, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9},
		}))
	}
	for _, dev := range []string{"eth1", "eth0"} {
		setMTU(t, ns, dev, 1400)
		neighbour(dev, map[string]string{"eth1": "10.66.0.1", "eth0": "10.77.0.66"}[dev])
	}
	h.until(t, "neighbour 10.77.0.66")
	// The kernel adds the local routes of the lab's IPv6 addresses in the background.
	late := func(text string) bool { return strings.HasPrefix(text, "route fd77::1/128 ") }
	if list := slices.DeleteFunc(h.all(), late); !slices.Equal(list, []string{"port", "neighbour 10.77.0.66"}) {
		t.Errorf("got %q", list)
	}
}

// TestFollowerReportsRoutes: changes of routes are reported with the destination, changes of rules as changes of all
// routes.
func TestFollowerReportsRoutes(t *testing.T) {
	ns := twoHosts(t)
	_, h := follow(t, ns, "eth0")
	_, dest, _ := net.ParseCIDR("10.99.0.0/16")
	_, all, _ := net.ParseCIDR("::/0")
	check(t, ns.Netlink().RouteAdd(&netlink.Route{Dst: dest, Gw: net.ParseIP("10.77.0.2")}))
	check(t, ns.Netlink().RouteAdd(&netlink.Route{Dst: all, Gw: net.ParseIP("fd77::2")}))
	rule := netlink.NewRule()
	rule.Table, rule.Family = 7, netlink.FAMILY_V4
	check(t, ns.Netlink().RuleAdd(rule))
	h.until(t, "routes")
	for _, want := range []string{"route 10.99.0.0/16 table 254", "route ::/0 table 254"} {
		if !slices.Contains(h.all(), want) {
			t.Errorf("%q is not in %q", want, h.all())
		}
	}
}

// TestFollowerReportsMissed: if notifications overflow the socket, all subscribers are notified by Missed, and later
// changes are reported again.
func TestFollowerReportsMissed(t *testing.T) {
	ns := twoHosts(t)
	s, first := follow(t, ns, "eth0")
	_, second := follow(t, ns, "eth1")
	f := s.follower
	check(t, unix.SetsockoptInt(f.socket.GetFd(), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096))
	f.mu.Lock() // blocks the follower after one message
	for i := range 100 {
		check(t, ns.AddAddress("eth0", fmt.Sprintf("10.77.1.%d/24", i)))
	}
	f.mu.Unlock()
	first.until(t, "missed")
	second.until(t, "missed")
	first.forget()
	setMTU(t, ns, "eth0", 1400)
	first.until(t, "port")
}

// TestOneFollowerPerNamespace: all subscriptions in a namespace share one follower. Each receives changes of its own
// interface only, and the filter admits only followed interfaces.
func TestOneFollowerPerNamespace(t *testing.T) {
	ns, other := twoHosts(t), twoHosts(t)
	a, changesOfA := follow(t, ns, "eth0")
	b, heardB := follow(t, ns, "eth1")
	again, heardAgain := follow(t, ns, "eth0")
	elsewhere, _ := follow(t, other, "eth0")
	f := a.follower
	if b.follower != f || again.follower != f || elsewhere.follower == f {
		t.Fatal("want one follower per namespace")
	}
	wanted := func(names ...string) {
		t.Helper()
		var want []int
		for _, name := range names {
			want = append(want, index(t, ns, name))
		}
		slices.Sort(want)
		if !slices.Equal(f.indexes, want) {
			t.Errorf("the filter admits %v, want %v", f.indexes, want)
		}
	}
	wanted("eth0", "eth1")
	setMTU(t, ns, "eth0", 1400)
	changesOfA.until(t, "port")
	heardAgain.until(t, "port")
	if list := heardB.all(); len(list) != 0 {
		t.Errorf("eth1: %q", list)
	}
	a.Close()
	a.Close()
	changesOfA.forget()
	wanted("eth0", "eth1")
	again.Close()
	wanted("eth1")
	setMTU(t, ns, "eth0", 1401)
	setMTU(t, ns, "eth1", 1401)
	heardB.until(t, "port")
	if list := changesOfA.all(); len(list) != 0 {
		t.Errorf("after Close: %q", list)
	}
	a.Tell(changesOfA) // must not be called
	b.Close()
	elsewhere.Close()
	if len(followers.of) != 0 {
		t.Errorf("followers are left: %v", followers.of)
	}
	next, heardNext := follow(t, ns, "eth0")
	if next.follower == f {
		t.Error("the follower that has ended is used again")
	}
	setMTU(t, ns, "eth0", 1402)
	heardNext.until(t, "port")
}

// TestManyInterfaces: each subscription receives only changes of its own interface, whether the filter compares indexes
// or, for many interfaces, admits all.
func TestManyInterfaces(t *testing.T) {
	ns := labtest.New(t, "host")
	var all []*recorder
	add := func(n int) {
		for range n {
			name := fmt.Sprintf("a%d", len(all))
			check(t, ns.Netlink().LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "peer-of-" + name}))
			_, h := follow(t, ns, name)
			all = append(all, h)
		}
	}
	eachHears := func(mtu int) {
		all[0].forget()
		setMTU(t, ns, "a0", mtu+1)
		all[0].until(t, "port") // earlier changes were received by now
		for _, h := range all {
			h.forget()
		}
		for i, h := range all {
			setMTU(t, ns, fmt.Sprintf("a%d", i), mtu)
			h.until(t, "port")
			if next := all[(i+1)%len(all)]; i+1 < len(all) && len(next.all()) != 0 {
				t.Errorf("interface %d of %d received changes of another: %q", i+1, len(all), next.all())
			}
			h.forget()
		}
	}
	add(maxFiltered)
	eachHears(1400)
	add(2)
	eachHears(1402)
}

// TestErrorsAreNotTheEnd: a failed read is reported by Missed and retried after a pause, or without a pause after an
// overflow.
func TestErrorsAreNotTheEnd(t *testing.T) {
	for _, row := range []struct {
		err           error
		missed, pause bool
	}{
		{nil, false, false},
		{unix.EINTR, false, false},
		{unix.EAGAIN, false, false},
		{unix.ENOBUFS, true, false},
		{unix.EIO, true, true},
		{errors.New("a message that is too short"), true, true},
	} {
		h := &recorder{}
		f := &follower{subscriptions: map[*Subscription]struct{}{{changes: h}: {}, {}: {}}}
		if pause := f.handle(readChange, nil, row.err); pause != row.pause || slices.Contains(h.all(), "missed") != row.missed {
			t.Errorf("%v: pause %v, got %q", row.err, pause, h.all())
		}
	}
}

// TestFollowAndLeaveAtOnce: concurrent subscriptions and closes leave no follower behind.
func TestFollowAndLeaveAtOnce(t *testing.T) {
	ns := twoHosts(t)
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 50 {
				err := ns.Do(func() error {
					s, err := Follow(i%3 + 1)
					if err == nil {
						s.Tell(&recorder{})
						s.Close()
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	if len(followers.of) != 0 {
		t.Errorf("followers are left: %v", followers.of)
	}
}

// TestLocalRoutes: LocalRoutes lists the routes of the interface's addresses in all tables.
func TestLocalRoutes(t *testing.T) {
	ns := twoHosts(t)
	q := queries(t, ns)
	check(t, ns.AddAddress("eth1", "10.66.0.1/24"))
	link, err := ns.Netlink().LinkByName("eth0")
	check(t, err)
	for table, protocol := range map[int]netlink.RouteProtocol{77: unix.RTPROT_KERNEL, 1077: unix.RTPROT_KERNEL, 78: unix.RTPROT_STATIC} {
		check(t, ns.Netlink().RouteAdd(&netlink.Route{
			Table: table, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Protocol: protocol,
			Dst: netlink.NewIPNet(net.IPv4(239, 1, 2, 3)), LinkIndex: link.Attrs().Index,
		}))
	}
	list, err := q.LocalRoutes()
	check(t, err)
	group := netip.MustParseAddr("239.1.2.3")
	want := []LocalRoute{{netip.MustParseAddr("10.77.0.1"), unix.RT_TABLE_LOCAL}, {group, 77}, {group, 1077}}
	slices.SortFunc(list, func(a, b LocalRoute) int { return cmp.Or(a.Dest.Compare(b.Dest), cmp.Compare(a.Table, b.Table)) })
	if !slices.Equal(list, want) {
		t.Errorf("%v, want %v", list, want)
	}
}

// FuzzTell: a message with any content does not crash the parsers.
func FuzzTell(f *testing.F) {
	f.Add(uint16(unix.RTM_NEWROUTE), []byte{2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 10, 99, 0, 0})
	f.Add(uint16(286), []byte("00000000\x19\x0000000000000000000000000")) // an attribute that ends unaligned, at the end
	f.Add(uint16(unix.RTM_NEWNEIGH), []byte{2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 1, 8, 0, 1, 0, 10, 77, 0, 2})
	f.Fuzz(func(_ *testing.T, kind uint16, data []byte) {
		m := syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: kind}, Data: data}
		if _, say := readChange(m); say != nil {
			say(&recorder{})
		}
		if len(data) >= unix.SizeofIfAddrmsg {
			parseAddress(data)
		}
	})
}

// TestPendingGathers: several changes are signalled once and are returned together. A later change is signalled again.
func TestPendingGathers(t *testing.T) {
	p := NewPending[[]int]()
	for round := range 2 {
		for i := range 3 {
			p.Note(func(all *[]int) { *all = append(*all, i) })
		}
		<-p.Ready()
		if got := p.Take(); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("round %d: %v", round, got)
		}
		select {
		case <-p.Ready():
			t.Error("ready without a change")
		default:
		}
		if got := p.Take(); got != nil {
			t.Errorf("%v is left", got)
		}
	}
}

// TestPace: Pace calls its function each time, and returns true until it is stopped.
func TestPace(t *testing.T) {
	calls, stop := 0, make(chan struct{})
	for range 3 {
		if !Pace(stop, func() { calls++ }) {
			t.Error("stopped unexpectedly")
		}
	}
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
	close(stop)
	for Pace(stop, func() {}) { // select may choose either case if both are ready
	}
}
