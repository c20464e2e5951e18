package loopback

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/ib"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server"
)

// Device is one that programs open. It can be asked what it is, and counts, without a program.
type Device interface {
	server.Source
	provider.Doer
	Counters() ([]verbs.Counter, error)
}

// guests is the device that makes a host for each process. What it is it knows of a host that no program
// gets: one without addresses, whose link is down, so that it gets no packets.
type guests struct {
	blank  *hca.Card // of that host
	home   *Network
	pools  []*pool
	log    *slog.Logger
	last   atomic.Uint64 // host, for its name
	ending sync.WaitGroup

	mu    sync.Mutex
	hosts []*hca.Card     // of programs, in the order in which they came
	known map[any]*guest  // by processes
	gone  []verbs.Counter // the sums of those that have ended; nil if none has
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
	addresses, err := g.takeAddresses()
	if err != nil {
		return nil, nil, err
	}
	host, err := g.home.newCard(fmt.Sprintf("%s%d", Name, g.last.Add(1)), 1, addresses...)
	if err != nil {
		g.giveAddresses(addresses)
		return nil, nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hosts = append(g.hosts, host)
	return host, addresses, nil
}

// remove ends a host. What it has counted stays.
func (g *guests) remove(host *hca.Card, addresses []netip.Addr) {
	if err := host.Close(); err != nil {
		g.log.Warn("a host did not close cleanly", "addresses", addresses, "error", err)
	}
	g.home.forget(host.Name())
	g.giveAddresses(addresses)
	final, err := host.Counters()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hosts = slices.DeleteFunc(g.hosts, func(h *hca.Card) bool { return h == host }); err == nil {
		g.gone = hca.AddCounters(g.gone, final)
	}
}

// Do implements provider.Doer: it answers queries by what all hosts have in common. Each has a GUID of its own, and their
// links are up. The GID table has the lines of all hosts, each with its host's name and its index there.
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
		if err := host.Do(ctx, code, request, &table); err == nil { // else it is ending
			all.Entries = append(all.Entries, table.Entries...)
		}
	}
}

// Counters are the sums of those of all hosts that there were.
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

// Alone is the address of the only process that has been on the network, if no packet was sent yet; else it is not valid.
// Hosts with names are not counted: any process may use them.
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

func (g *guests) takeAddresses() (list []netip.Addr, err error) {
	for _, p := range g.pools {
		a, err := p.take()
		if err != nil {
			g.giveAddresses(list)
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// giveAddresses gives them back, each to the pool in the place of its own.
func (g *guests) giveAddresses(list []netip.Addr) {
	for i, a := range list {
		g.pools[i].give(a)
	}
}
