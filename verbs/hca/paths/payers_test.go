// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/quota"
)

// limitedTable returns a table whose host keeps up to most next hops. Neighbours of 10.1.0.0/16 do not respond.
func limitedTable(most uint64) (*Table, *around) {
	table, a := newTable()
	for i := range 1000 {
		a.neighbours[netip.MustParseAddr(silent(i))] = network.Neighbour{}
	}
	table.Kept = quota.NewNeighbours(func(bool) uint64 { return most })
	return table, a
}

func silent(i int) string { return fmt.Sprintf("10.1.%d.%d", i>>8, i&255) }

func userOf(name string) user { return newUser(quota.New(name, quota.Limits{}, nil)) }

// takeSilent takes paths to silent neighbours, until the error that it returns.
func takeSilent(table *Table, u user) (taken []*Path, err error) {
	for i := range 1000 {
		p, err := table.Take(to(silent(i)), u)
		if err != nil {
			return taken, err
		}
		taken = append(taken, p)
	}
	return taken, nil
}

// TestUnresolvedAreBounded: a user can have 64 next hops that have not responded, and other users are not affected.
func TestUnresolvedAreBounded(t *testing.T) {
	table, a := limitedTable(1 << 20)
	eve, mia := userOf("eve"), userOf("mia")
	taken, err := takeSilent(table, eve)
	refused(t, err, verbs.ErrLimit, "eve has 64", "check their addresses")
	if len(taken) != quota.MostUnresolved || len(a.kept()) != quota.MostUnresolved {
		t.Fatalf("got %d paths, %d next hops held", len(taken), len(a.kept()))
	}
	again, err := table.Take(taken[0].Ends(), eve) // it pays already
	check(t, err)
	answering, err := table.Take(to("10.0.0.2"), mia)
	check(t, err)
	check(t, answering.Err())
	known, err := table.Take(to("10.0.0.2"), eve) // a neighbour that has responded needs no place
	check(t, err)
	shared, err := table.Take(taken[0].Ends(), mia)
	check(t, err)
	if n := mia.pays.Unresolved(); n != 1 {
		t.Errorf("mia pays for %d", n)
	}
	for _, p := range append(taken, again, known) {
		table.Leave(p, eve)
	}
	if n := eve.pays.Unresolved(); n != 0 || len(a.kept()) != 2 {
		t.Errorf("eve pays for %d, %v are held", n, a.kept())
	}
	a.says(silent(0), network.Neighbour{Known: true})
	check(t, table.AskHops(false))
	if n := mia.pays.Unresolved(); n != 0 {
		t.Errorf("mia pays for %d neighbours that have answered", n)
	}
	table.Leave(shared, mia)
	table.Leave(answering, mia)
}

// TestKeptAreBounded: the host keeps a limited number of next hops for all users, some for those that have few, and
// paths that linger make room.
func TestKeptAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, a := limitedTable(64)
		eve, mia := userOf("eve"), userOf("mia")
		var taken []*Path
		for i := range 256 {
			p, err := table.Take(to(fmt.Sprintf("10.0.1.%d", i)), eve)
			if err != nil {
				refused(t, err, verbs.ErrLimit, "all users together have 56 of 64", "gc_thresh3")
				break
			}
			taken = append(taken, p)
		}
		if len(taken) != 56 || len(a.kept()) != 56 {
			t.Fatalf("got %d paths, %d held", len(taken), len(a.kept()))
		}
		p, err := table.Take(to("10.0.0.2"), mia)
		check(t, err)
		table.Leave(p, mia)
		for _, p := range taken {
			table.Leave(p, eve)
		}
		for i := range 200 { // the oldest lingering paths are freed
			p, err := table.Take(to(fmt.Sprintf("10.0.2.%d", i)), eve)
			check(t, err)
			table.Leave(p, eve)
			if len(a.kept()) > 64 {
				t.Fatalf("got %d held", len(a.kept()))
			}
		}
		time.Sleep(3 * pathLinger)
		synctest.Wait()
		if len(a.kept()) != 0 || table.lingering != 0 || eve.pays.Unresolved() != 0 {
			t.Errorf("left: %v, %d linger", a.kept(), table.lingering)
		}
	})
}

// TestSilentIPv6CountsTwice: the host keeps two entries for an IPv6 hop until it has responded, and one afterwards.
func TestSilentIPv6CountsTwice(t *testing.T) {
	table, a := limitedTable(16)
	hop := func(i int) string { return fmt.Sprintf("fd01::%x", i+1) }
	for i := range 100 {
		a.neighbours[netip.MustParseAddr(hop(i))] = network.Neighbour{}
	}
	var taken []*Path
	fill := func(want int) {
		t.Helper()
		for len(taken) < 100 {
			p, err := table.Take(to(hop(len(taken))), newUser(nil))
			if err != nil {
				refused(t, err, verbs.ErrLimit, "of 16", "net.ipv6.neigh.default.gc_thresh3")
				break
			}
			taken = append(taken, p)
		}
		if len(taken) != want || len(a.kept()) != want {
			t.Fatalf("%d paths, %d held; want %d", len(taken), len(a.kept()), want)
		}
	}
	fill(8)
	for i := range 4 {
		a.says(hop(i), network.Neighbour{Known: true})
	}
	check(t, table.AskHops(false))
	fill(10)
	for _, p := range taken {
		table.Leave(p, newUser(nil))
	}
	table.Close()
	if len(a.kept()) != 0 {
		t.Errorf("%v are held", a.kept())
	}
	check(t, table.Kept.Take(true, 14, nil)) // all entries have been returned
	refused(t, table.Kept.Take(true, 3, nil), verbs.ErrLimit)
}

// TestTakeInTurn: a caller at the limit waits until one of its next hops has responded, or for some seconds.
func TestTakeInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, a := limitedTable(1 << 20)
		eve := userOf("eve")
		taken, _ := takeSilent(table, eve)
		_, err := table.TakeInTurn(t.Context(), to("10.1.3.0"), eve)
		refused(t, err, verbs.ErrLimit, "eve has 64")
		go func() {
			time.Sleep(time.Second)
			a.says(silent(5), network.Neighbour{Known: true})
			_ = table.AskHops(false)
		}()
		p, err := table.TakeInTurn(t.Context(), to("10.1.3.0"), eve)
		check(t, err)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = table.TakeInTurn(over, to("10.1.3.1"), eve)
		refused(t, err, verbs.ErrLimit)
		for _, p := range append(taken, p) {
			table.Leave(p, eve)
		}
		close(eve.ended)
		time.Sleep(3 * pathLinger)
	})
}

// TestPayersFollowTheRoute: users pay for the current next hop of their paths.
func TestPayersFollowTheRoute(t *testing.T) {
	table, a := limitedTable(1 << 20)
	eve, mia := userOf("eve"), userOf("mia")
	var taken []*Path
	for i := range 10 {
		p, err := table.Take(to(silent(i)), eve)
		check(t, err)
		taken = append(taken, p)
	}
	_, err := table.Take(to(silent(0)), mia)
	check(t, err)
	a.set(func(a *around) {
		for i := range 10 {
			a.hops[netip.MustParseAddr(silent(i))] = netip.MustParseAddr(silent(999))
		}
	})
	check(t, table.Update(Change{Up: true, Changes: Changes{AllRoutes: true}}))
	if e, m := eve.pays.Unresolved(), mia.pays.Unresolved(); e != 1 || m != 1 || len(a.kept()) != 1 {
		t.Errorf("behind one router: %d and %d, %v held", e, m, a.kept())
	}
	a.set(func(a *around) { clear(a.hops) })
	check(t, table.Update(Change{Up: true, Changes: Changes{AllRoutes: true}}))
	if e, m := eve.pays.Unresolved(), mia.pays.Unresolved(); e != 10 || m != 1 || len(a.kept()) != 10 {
		t.Errorf("on the link again: %d and %d, %v held", e, m, a.kept())
	}
	for _, p := range taken {
		table.Leave(p, eve)
	}
	if e := eve.pays.Unresolved(); e != 0 || len(a.kept()) != 1 {
		t.Errorf("eve pays for %d, %v held", e, a.kept())
	}
}

// TestCloseRefunds: a closed table keeps no next hop of paths without users.
func TestCloseRefunds(t *testing.T) {
	table, a := limitedTable(8)
	mia := userOf("mia")
	table.Leave(take(t, table, "10.0.0.2"), newUser(nil)) // it lingers
	used, err := table.Take(to(silent(1)), mia)
	check(t, err)
	table.Close()
	if len(a.kept()) != 1 {
		t.Errorf("%v are held", a.kept())
	}
	table.Leave(used, mia)
	other, _ := newTable()
	other.Kept = table.Kept
	for i := range 8 {
		take(t, other, fmt.Sprintf("10.0.0.%d", i+2))
	}
	if len(a.kept()) != 0 || mia.pays.Unresolved() != 0 {
		t.Errorf("%v are held", a.kept())
	}
}

// TestHostFailsToHold: the charge for a next hop that the host fails to query is returned.
func TestHostFailsToHold(t *testing.T) {
	table, a := limitedTable(1)
	eve := userOf("eve")
	a.fails = errHost
	for range 3 {
		_, err := table.Take(to(silent(1)), eve)
		refused(t, err, errHost)
	}
	a.fails = nil
	_, err := table.Take(to(silent(1)), eve)
	check(t, err)
	if n := eve.pays.Unresolved(); n != 1 {
		t.Errorf("eve pays for %d", n)
	}
}
