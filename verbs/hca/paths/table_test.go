// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
)

// Users with the same ends share a path, and one query.
func TestUsersShareAPath(t *testing.T) {
	table, a := newTable()
	first := take(t, table, "10.0.0.2")
	for range 100 {
		if take(t, table, "10.0.0.2") != first {
			t.Fatal("got another path")
		}
	}
	if a.routes != 1 || table.List()[0].Users != 101 {
		t.Errorf("got %d queries, %+v", a.routes, table.List())
	}
	a.expect(t, first, datapath.PathOpen, 2)
	if got := a.shown[first.Entry()].FromMAC; got != ownMAC {
		t.Errorf("packets leave from %v", got)
	}
}

// Paths with the same next hop share it: its changes reach all of them, and the last one releases it.
func TestPathsShareAHop(t *testing.T) {
	table, a := newTable()
	router := netip.MustParseAddr("10.0.0.9")
	for _, far := range []string{"192.0.2.1", "192.0.2.2"} {
		a.hops[netip.MustParseAddr(far)] = router
	}
	a.says("10.0.0.9", network.Neighbour{Failed: true})
	one, two := take(t, table, "192.0.2.1"), take(t, table, "192.0.2.2")
	a.expect(t, one, datapath.PathUnreachable, 0)
	a.says("10.0.0.9", network.Neighbour{Known: true, MAC: wire.MAC{5: 9}})
	c := Change{Up: true}
	c.AddNeighbour(router)
	check(t, table.Update(c))
	a.expect(t, one, datapath.PathOpen, 9)
	a.expect(t, two, datapath.PathOpen, 9)
	a.says("10.0.0.9", network.Neighbour{Failed: true})
	check(t, table.Update(c)) // so that they do not linger
	table.Leave(one, newUser(nil))
	if len(a.held) != 1 {
		t.Errorf("%v are held while a path is used", a.held)
	}
	table.Leave(two, newUser(nil))
	if len(a.held) != 0 || len(table.List()) != 0 || table.Held() != 0 {
		t.Errorf("%v are held; %v", a.held, table.List())
	}
}

// Paths without a next hop query none.
func TestPathsWithoutHops(t *testing.T) {
	table, a := newTable()
	a.expect(t, take(t, table, "10.0.0.1"), datapath.PathLocal, 0)
	a.expect(t, take(t, table, "239.1.1.7"), datapath.PathOpen, 7)
	if a.routes != 0 || len(a.held) != 0 {
		t.Errorf("got %d queries, %v held", a.routes, a.held)
	}
}

// A missing route is reported by the path, and may change.
func TestRoutesComeAndGo(t *testing.T) {
	table, a := newTable()
	a.noRoute = true
	p := take(t, table, "10.0.0.2")
	refused(t, p.Err(), verbs.ErrUnreachable, "no route to 10.0.0.2 from 10.0.0.1 through eth0")
	a.expect(t, p, datapath.PathUnreachable, 0)
	a.noRoute, a.mtu = false, 1500
	everything := Change{Up: true, Changes: Changes{AllRoutes: true, AllNeighbours: true}}
	check(t, table.Update(everything))
	check(t, p.Err())
	a.expect(t, p, datapath.PathOpen, 2)
	if mtu := p.MTU(wire.MTU4096); mtu != wire.MTU1024 {
		t.Errorf("MTU %v over a route of 1500 bytes", mtu)
	}
	a.fails = errHost
	refused(t, table.Update(everything), errHost)
	a.expect(t, p, datapath.PathOpen, 2) // a failed query changes nothing
	a.fails, a.noRoute = nil, true
	check(t, table.Update(Change{Changes: everything.Changes})) // nor does a link that is down
	a.expect(t, p, datapath.PathOpen, 2)
	check(t, table.Update(Change{Up: true, CameUp: true}))
	a.expect(t, p, datapath.PathUnreachable, 0)
}

// A path follows the port's addresses and its MAC.
func TestPathsFollowThePort(t *testing.T) {
	table, a := newTable()
	p := take(t, table, "10.0.0.2")
	other := wire.MAC{5: 0xBB}
	table.SetPort(other, []wire.GID{gid("10.0.0.2")})
	if got := a.shown[p.Entry()].FromMAC; got != other {
		t.Errorf("packets leave from %v", got)
	}
	check(t, table.Update(Change{GIDs: map[wire.GID]struct{}{gid("10.0.0.1"): {}, gid("10.0.0.2"): {}}}))
	a.expect(t, p, datapath.PathLocal, 0) // the destination is the port's own now
	table.SetPort(other, nil)
	check(t, table.Update(Change{GIDs: map[wire.GID]struct{}{gid("10.0.0.2"): {}}}))
	refused(t, p.Err(), verbs.ErrNoGID, "eth0 does not have the source address")
}

// A path whose last user has left stays for some seconds, and needs no query when it is taken again.
func TestPathsLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, a := newTable()
		for range 100 {
			table.Leave(take(t, table, "10.0.0.2"), newUser(nil))
		}
		if a.routes != 1 || len(a.held) != 1 {
			t.Errorf("got %d queries, %v held", a.routes, a.held)
		}
		p := take(t, table, "10.0.0.2")
		time.Sleep(3 * pathLinger)
		if len(table.List()) != 1 {
			t.Error("a path with a user was freed")
		}
		table.Leave(p, newUser(nil))
		time.Sleep(2 * pathLinger)
		synctest.Wait()
		if len(table.List()) != 0 || len(a.held) != 0 {
			t.Errorf("%v, %v held", table.List(), a.held)
		}
	})
}

// The number of lingering paths is limited.
func TestNotAllPathsLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, _ := newTable()
		for i := range 2 * maxLingering {
			table.Leave(take(t, table, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}).String()), newUser(nil))
		}
		if n := len(table.List()); n != maxLingering {
			t.Errorf("got %d lingering paths", n)
		}
		time.Sleep(2 * pathLinger)
		synctest.Wait()
		if n := len(table.List()); n != 0 {
			t.Errorf("got %d paths", n)
		}
		table.Close()
		table.Leave(take(t, table, "10.0.0.2"), newUser(nil))
		if n := len(table.List()); n != 0 {
			t.Errorf("got %d lingering paths in a closed table", n)
		}
	})
}

// TestReachOfAPath: the path MTU is the card's, or the route's if that is smaller.
func TestReachOfAPath(t *testing.T) {
	for _, row := range [][3]wire.MTU{{0, wire.MTU1024, wire.MTU1024}, {wire.MTU512, wire.MTU1024, wire.MTU512}, {wire.MTU4096, wire.MTU1024, wire.MTU1024}} {
		if got := (&Path{table: new(Table), mtu: row[0]}).MTU(row[1]); got != row[2] {
			t.Errorf("route %v, card %v: %v", row[0], row[1], got)
		}
	}
}
