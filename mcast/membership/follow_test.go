// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/lab"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestMTUFlickers: the MTU was briefly too small for IPv6, which was not observed. It is detected that the kernel has
// left all IPv6 groups.
func TestMTUFlickers(t *testing.T) {
	host, log := pair(t).A, new(logged)
	m := openWith(t, Config{Interface: "eth0", Namespace: host.Path(), StateDir: t.TempDir(), Log: log.logger()})
	for _, way := range ways {
		check(t, m.Join(way.group))
	}
	link := eth0(t, host)
	for range 3 {
		m.mu.Lock() // changes are processed after both steps
		check(t, host.Netlink().LinkSetMTU(link, minIPv6MTU-1))
		if isMember(t, host, ways[2].group) {
			t.Error("the kernel has not left the group")
		}
		check(t, host.Netlink().LinkSetMTU(link, minIPv6MTU))
		m.mu.Unlock()
		eventually(t, "membership", func() bool { return isMember(t, host, ways[2].group) })
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("logged:\n%s", log)
	}
}

// TestSocketIsNoMembership: a socket, or a stand-in for an address, does not imply that the kernel is still a member of
// the group.
func TestSocketIsNoMembership(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	for _, via := range []Method{Socket, Netlink} {
		if via == Netlink {
			address, err := netlink.ParseAddr("10.77.0.1/24")
			check(t, err)
			check(t, host.Netlink().AddrDel(eth0(t, host), address)) // a socket replaces the address
		}
		m := open(t, host, via)
		check(t, m.Join(group))
		m.mu.Lock()
		held := m.joined[group].hold
		if stand, is := held.(standIn); is {
			held = stand.hold
		}
		check(t, unix.SetsockoptIPMreqn(int(held.(socketHold)), unix.IPPROTO_IP, unix.IP_DROP_MEMBERSHIP,
			&unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(m.index)}))
		if isMember(t, host, group) {
			t.Error("the kernel has not left the group")
		}
		check(t, m.repair(everything()))
		m.mu.Unlock()
		if !isMember(t, host, group) || m.List()[0].Via != Socket {
			t.Errorf("%v: not joined again: %+v", via, m.List())
		}
		check(t, m.Close())
	}
}

// TestBorrowedAddressIsNoMembership: when another address of the group is removed, the kernel leaves the group although
// the administrator's address remains. A socket then joins the group.
func TestBorrowedAddressIsNoMembership(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	administrator(t, host, "239.1.2.3/32", unix.IFA_F_MCAUTOJOIN)
	m := open(t, host, Netlink)
	check(t, m.Join(group))
	only(t, m, Joined{group, 1, Netlink, true})
	longer := administrator(t, host, "239.1.2.3/24", 0)
	check(t, host.Netlink().AddrDel(eth0(t, host), longer))
	eventually(t, "membership by socket", func() bool { return m.List()[0].Via == Socket && isMember(t, host, group) })
	if len(groupAddresses(t, host, group)) != 1 {
		t.Error("the administrator's address is gone")
	}
}

// TestAnotherProgramIsInTheGroup: the kernel has left the group for us but remains a member for another program. The
// group is joined again, and remains joined when that program ends.
func TestAnotherProgramIsInTheGroup(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	m := open(t, host, Netlink)
	check(t, m.Join(group))
	program := newTalker(t, host, group)
	longer := administrator(t, host, "239.1.2.3/24", 0)
	eventually(t, "the foreign address is observed", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.joined[group].foreign == 1 })
	check(t, host.Netlink().AddrDel(eth0(t, host), longer))
	eventually(t, "the removal is observed", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.joined[group].foreign == 0 })
	program.close()
	if !isMember(t, host, group) {
		t.Error("not a member without the program")
	}
	only(t, m, Joined{group, 1, Netlink, false})
}

// TestLostGroupIsJoinedAgain: a group that cannot be joined again is lost, which is logged once. It is joined as soon
// as that is possible, without further changes.
func TestLostGroupIsJoinedAgain(t *testing.T) {
	host, group, log := pair(t).A, ways[1].group, new(logged)
	m := openWith(t, Config{Interface: "eth0", Namespace: host.Path(), Via: Socket, StateDir: t.TempDir(), Log: log.logger()})
	check(t, m.Join(group))
	m.mu.Lock()
	one := m.joined[group]
	check(t, unix.SetsockoptIPMreqn(int(one.hold.(socketHold)), unix.IPPROTO_IP, unix.IP_DROP_MEMBERSHIP,
		&unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(m.index)}))
	m.via = Netlink // the kernel rejects addresses then
	sysctl(t, host, "ipv4/igmp_max_memberships", "0")
	m.mu.Unlock()
	m.changes.Port()
	eventually(t, "loss", func() bool { return m.List()[0] == Joined{group, 1, Auto, false} })
	m.changes.Port()
	sysctl(t, host, "ipv4/igmp_max_memberships", "20")
	eventually(t, "membership", func() bool { return isMember(t, host, group) })
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors logged:\n%s", n, log)
	}
}

// blind makes queries of the state fail until end is called.
func blind(t *testing.T, m *Memberships, inside *lab.Namespace) (end func()) {
	t.Helper()
	var closed *host.Queries
	check(t, inside.Do(func() (err error) { closed, err = host.OpenQueries(m.index); return err }))
	closed.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	sees := m.addresses.queries
	m.addresses.queries = closed
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.addresses.queries = sees
	}
}

// TestFailedQuery: a failed query of the state changes nothing, and is retried until it succeeds, without further
// changes.
func TestFailedQuery(t *testing.T) {
	host, group, log := pair(t).A, ways[0].group, new(logged)
	m := openWith(t, Config{Interface: "eth0", Namespace: host.Path(), Via: Netlink, StateDir: t.TempDir(), Log: log.logger()})
	check(t, m.Join(group))
	check(t, m.Join(ways[0].marker))
	end := blind(t, m, host)
	check(t, host.Netlink().AddrDel(eth0(t, host), &groupAddresses(t, host, group)[0]))
	eventually(t, "a failed query", func() bool { return strings.Contains(log.String(), "cannot read the state") })
	for _, one := range m.List() {
		if one.Via != Netlink || one.Foreign {
			t.Errorf("changed: %+v", one)
		}
	}
	if len(groupAddresses(t, host, group)) != 0 {
		t.Error("a membership was changed although the state is unknown")
	}
	end()
	eventually(t, "the restored address", func() bool { return len(groupAddresses(t, host, group)) == 1 && !hasLocalRoute(t, host, group) })
	eventually(t, "the log line", func() bool { return strings.Contains(log.String(), "can be read again") })
	if n := strings.Count(log.String(), "cannot read the state"); n != 1 || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("logged:\n%s", log)
	}
}

// TestRepairFindsLocalRoutes: after lost notifications, local routes are found in all tables.
func TestRepairFindsLocalRoutes(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	m := open(t, host, Netlink)
	check(t, m.Join(group))
	m.mu.Lock() // prevents concurrent repairs
	defer m.mu.Unlock()
	for _, table := range []int{unix.RT_TABLE_LOCAL, 77} {
		check(t, host.Netlink().RouteAdd(&netlink.Route{
			Table: table, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Protocol: unix.RTPROT_KERNEL,
			Dst: single(group), LinkIndex: m.index,
		}))
	}
	if !hasLocalRoute(t, host, group) {
		t.Fatal("no local route exists")
	}
	check(t, m.repair(everything()))
	if hasLocalRoute(t, host, group) {
		t.Errorf("a local route is left: %v", routes(t, host))
	}
}

// TestChangesAreGathered: many changes cause one query; changes of other objects cause none, and stored changes are
// limited.
func TestChangesAreGathered(t *testing.T) {
	group := func(i int) netip.Prefix { return netip.PrefixFrom(nth4(i), 32) }
	rows := []struct {
		name   string
		tell   func(n *pendingChanges)
		wakes  bool
		port   bool
		all    bool
		routes int
	}{
		{"nothing", func(*pendingChanges) {}, false, false, false, 0},
		{"others' routes", func(n *pendingChanges) {
			n.Route(netip.MustParsePrefix("239.5.0.0/24"), 255)
			n.Route(netip.MustParsePrefix("10.0.0.1/32"), 255)
			n.Route(netip.MustParsePrefix("ff02::1/128"), 255)
			n.Routes()
			n.Neighbour(nth4(0))
		}, false, false, false, 0},
		{"the port, often", func(n *pendingChanges) {
			for range 1000 {
				n.Port()
			}
		}, true, true, false, 0},
		{"routes, each in two tables", func(n *pendingChanges) {
			for i := range 100 {
				n.Route(group(i%10), 255)
				n.Route(group(i%10), 77)
			}
		}, true, false, false, 20},
		{"too many routes", func(n *pendingChanges) {
			for i := range maxRouteChanges + 1 {
				n.Route(group(i), 255)
			}
		}, true, false, true, 0},
		{"missed", func(n *pendingChanges) { n.Missed() }, true, true, true, 0},
	}
	for _, row := range rows {
		n := newPendingChanges()
		row.tell(n)
		wakes := false
		select {
		case <-n.Ready():
			wakes = true
		default:
		}
		c := n.Take()
		if wakes != row.wakes || c.port != row.port || c.allRoutes != row.all || len(c.routes) != row.routes {
			t.Errorf("%s: wakes %v, %+v", row.name, wakes, c)
		}
	}
}
