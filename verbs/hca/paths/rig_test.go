// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca/network"
)

// around is a host and an engine with the answers that a test sets; it counts the queries.
type around struct {
	mu         sync.Mutex
	fails      error // of all queries
	noRoute    bool
	hops       map[netip.Addr]netip.Addr // by destination; default: the destination
	mtu        int
	neighbours map[netip.Addr]network.Neighbour // default: they respond
	held       []netip.Addr
	routes     int
	shown      map[*datapath.Path]datapath.PathAttr
}

func (a *around) Route(_, dest netip.Addr) (host.Route, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.routes++
	switch {
	case a.fails != nil:
		return host.Route{}, a.fails
	case a.noRoute:
		return host.Route{}, host.ErrNoRoute
	}
	hop, routed := a.hops[dest]
	if !routed {
		hop = dest
	}
	return host.Route{Hop: hop, MTU: a.mtu}, nil
}

func (a *around) Neighbour(hop netip.Addr) (network.Neighbour, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, said := a.neighbours[hop]; said {
		return n, a.fails
	}
	return network.Neighbour{MAC: wire.MAC{5: hop.AsSlice()[3]}, Known: true}, a.fails
}

func (a *around) Hold(hop netip.Addr) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.held, hop) {
		a.held = append(a.held, hop)
	}
	return a.fails
}

func (a *around) Release(hop netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = slices.DeleteFunc(a.held, func(one netip.Addr) bool { return one == hop })
}

// kept returns the held next hops.
func (a *around) kept() []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.held)
}

func (a *around) Do(change func()) { change() }

func (a *around) SetPath(p *datapath.Path, attr datapath.PathAttr) { a.shown[p] = attr }

// set changes the host's answers.
func (a *around) set(change func(*around)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *around) says(hop string, n network.Neighbour) {
	a.set(func(a *around) { a.neighbours[netip.MustParseAddr(hop)] = n })
}

var (
	ownMAC  = wire.MAC{5: 0xAA}
	errHost = errors.New("the host query failed")
)

func newTable() (*Table, *around) {
	a := &around{hops: map[netip.Addr]netip.Addr{}, neighbours: map[netip.Addr]network.Neighbour{}, shown: map[*datapath.Path]datapath.PathAttr{}}
	t := NewTable(Config{Host: a, Engine: a, Name: func() string { return "eth0" }, Log: slog.New(slog.DiscardHandler)})
	t.SetPort(ownMAC, []wire.GID{gid("10.0.0.1"), gid("fd00::1")})
	return t, a
}

func gid(s string) wire.GID { return wire.GIDFromAddr(netip.MustParseAddr(s)) }

func to(dest string) Ends { return Ends{gid("10.0.0.1"), gid(dest)} }

var check, refused = errtest.Check, errtest.Refused

func take(t testing.TB, table *Table, dest string) *Path {
	t.Helper()
	p, err := table.Take(to(dest), newUser(nil))
	check(t, err)
	return p
}

// expect checks the last state of a path in the engine.
func (a *around) expect(t testing.TB, p *Path, state datapath.PathState, last byte) {
	t.Helper()
	got := a.shown[p.Entry()]
	if got.State != state || got.DestMAC[5] != last {
		t.Errorf("%s: the engine has %+v, want state %v and MAC …%02x", fmt.Sprint(p.Ends().Dest), got, state, last)
	}
}
