package loopback

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server"
)

// Device is one that programs open. It can be asked what it is, and counts, without a program.
type Device interface {
	server.Source
	QueryDevice() (verbs.DeviceAttr, error)
	QueryPort(provider.QueryPortRequest) (verbs.PortAttr, error)
	QueryGIDTable(provider.QueryGIDTableRequest) (provider.QueryGIDTableGrant, error)
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

// QueryDevice gives what is the same for all hosts: each has another GUID.
func (g *guests) QueryDevice() (verbs.DeviceAttr, error) {
	attr, err := g.blank.QueryDevice()
	attr.NodeGUID, attr.SysImageGUID = 0, 0
	return attr, err
}

// QueryPort gives what is the same for all hosts, whose links are up.
func (g *guests) QueryPort(r provider.QueryPortRequest) (verbs.PortAttr, error) {
	attr, err := g.blank.QueryPort(r)
	attr.State, attr.PhysState = verbs.PortActive, verbs.PhysStateLinkUp
	return attr, err
}

// QueryGIDTable gives the lines of all hosts, each with its host's name and its index there.
func (g *guests) QueryGIDTable(r provider.QueryGIDTableRequest) (provider.QueryGIDTableGrant, error) {
	all, err := g.blank.QueryGIDTable(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, host := range g.hosts {
		if table, err := host.QueryGIDTable(r); err == nil { // else it is ending
			all.Entries = append(all.Entries, table.Entries...)
		}
	}
	return all, err
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
	table, err := g.hosts[0].QueryGIDTable(provider.QueryGIDTableRequest{Port: 1})
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
