// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server"
)

// Device is a device of the network. Its attributes and counters can be queried without a program.
type Device interface {
	server.Source
	provider.Doer
	Counters() ([]verbs.Counter, error)
}

// guests is the device with a host per process. Its attributes are those of an additional host without
// addresses, whose link is down.
type guests struct {
	blank  *hca.Card // of the additional host
	home   *Network
	pools  []*pool
	log    *slog.Logger
	last   atomic.Uint64 // number of the last host, for its name
	ending sync.WaitGroup

	mu    sync.Mutex
	hosts []*hca.Card     // of programs, in order of creation
	known map[any]*guest  // by process
	gone  []verbs.Counter // sums of closed hosts; nil if none was closed
}

func newGuests(home *Network, pools []*pool, log *slog.Logger) (*guests, error) {
	host, err := home.memory.AddHost(Name)
	if err != nil {
		return nil, err
	}
	host.SetUp(false)
	blank, err := hca.New(host, hca.WithoutInline())
	if err != nil {
		return nil, err
	}
	return &guests{blank: blank, home: home, pools: pools, log: log, known: map[any]*guest{}}, nil
}

// Name implements server.Source.
func (g *guests) Name() string { return Name }

func (g *guests) newHost() (*hca.Card, []netip.Addr, error) {
	addresses, err := g.acquireAddresses()
	if err != nil {
		return nil, nil, err
	}
	host, err := g.home.newCard(fmt.Sprintf("%s%d", Name, g.last.Add(1)), 1, addresses...)
	if err != nil {
		g.releaseAddresses(addresses)
		return nil, nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hosts = append(g.hosts, host)
	return host, addresses, nil
}

// remove closes a host and keeps its counters.
func (g *guests) remove(host *hca.Card, addresses []netip.Addr) {
	if err := host.Close(); err != nil {
		g.log.Warn("closing a host failed", "addresses", addresses, "error", err)
	}
	g.home.forget(host.Name())
	g.releaseAddresses(addresses)
	final, err := host.Counters()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hosts = slices.DeleteFunc(g.hosts, func(h *hca.Card) bool { return h == host }); err == nil {
		g.gone = hca.AddCounters(g.gone, final)
	}
}

// Do implements provider.Doer. The response has the attributes that all hosts share: GUIDs are 0, because
// they differ, and links are up. The GID table contains the entries of all hosts, each with its host's name
// and index.
func (g *guests) Do(ctx context.Context, code provider.Code, request, grant any) error {
	err := g.blank.Do(ctx, code, request, grant)
	switch grant := grant.(type) {
	case *verbs.DeviceAttr:
		grant.NodeGUID, grant.SysImageGUID = 0, 0
	case *verbs.PortAttr:
		grant.State, grant.PhysState = verbs.PortActive, ib.PhysStateLinkUp
	case *provider.QueryGIDTableGrant:
		g.addGIDs(ctx, code, request, grant)
	}
	return err
}

func (g *guests) addGIDs(ctx context.Context, code provider.Code, request any, all *provider.QueryGIDTableGrant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, host := range g.hosts {
		var table provider.QueryGIDTableGrant
		if err := host.Do(ctx, code, request, &table); err == nil { // otherwise it is being closed
			all.Entries = append(all.Entries, table.Entries...)
		}
	}
}

// Counters returns the sums over all hosts, including closed ones.
func (g *guests) Counters() ([]verbs.Counter, error) {
	sum, err := g.blank.Counters()
	g.mu.Lock()
	defer g.mu.Unlock()
	sum = hca.AddCounters(sum, g.gone)
	for _, host := range g.hosts {
		list, failed := host.Counters()
		if failed != nil {
			return nil, failed
		}
		sum = hca.AddCounters(sum, list)
	}
	return sum, err
}

// Alone returns the address of the only process that has been on the network, if no packet was sent yet;
// otherwise the zero address. Named hosts are not counted, because any process can use them.
func (n *Network) Alone() (address netip.Addr) {
	g := n.guests
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.hosts) != 1 || g.gone != nil || len(n.named) > 0 {
		return address
	}
	table, err := provider.Do(g.hosts[0], provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: 1})
	count, failed := g.hosts[0].Statistics()
	if err != nil || failed != nil || len(table.Entries) == 0 || count.Engine.Sent+count.Engine.Received > 0 {
		return address
	}
	return table.Entries[0].GID.Addr().Unmap()
}

func (g *guests) acquireAddresses() (list []netip.Addr, err error) {
	for _, p := range g.pools {
		a, err := p.acquire()
		if err != nil {
			g.releaseAddresses(list)
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// releaseAddresses returns addresses to their pools.
func (g *guests) releaseAddresses(list []netip.Addr) {
	for i, a := range list {
		g.pools[i].release(a)
	}
}
