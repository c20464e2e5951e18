package loopback

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server"
)

// Network is the wire with its hosts.
type Network struct {
	wire   *hca.Wire
	pools  []*pool
	named  []*hca.WireHost
	log    *slog.Logger
	last   atomic.Uint64 // host of a pool's, for its name
	guests sync.WaitGroup
}

// New makes the wire, with the hosts that have names.
func New(o Options, log *slog.Logger) (*Network, error) {
	wire, err := hca.NewWire(0, hca.WithoutInline())
	if err != nil {
		return nil, err
	}
	n := &Network{wire: wire, log: log}
	var fixed []netip.Addr
	for _, h := range o.Hosts {
		host, err := wire.AddHost(h.Name, h.Addresses...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--host %s: %w", h.Name, err), wire.Close())
		}
		n.named = append(n.named, host)
		fixed = append(fixed, h.Addresses...)
	}
	for _, prefix := range o.Pools {
		n.pools = append(n.pools, newPool(prefix, fixed...))
	}
	return n, nil
}

// Devices are those that programs open.
func (n *Network) Devices() []server.Source {
	list := []server.Source{guests{n}}
	for _, h := range n.named {
		list = append(list, h)
	}
	return list
}

// Close ends all hosts, and what programs have on them.
func (n *Network) Close() error {
	err := n.wire.Close()
	n.guests.Wait()
	return err
}

// guests is the device that makes a host for each session.
type guests struct{ *Network }

// Name implements server.Source.
func (g guests) Name() string { return Name }

// NewSession implements server.Source. The host ends with the session.
func (g guests) NewSession(c hca.SessionConfig) (*hca.Session, error) {
	addresses, err := g.takeAddresses()
	if err != nil {
		return nil, err
	}
	host, err := g.wire.AddHost(fmt.Sprintf("%s%d", Name, g.last.Add(1)), addresses...)
	if err != nil {
		g.giveAddresses(addresses)
		return nil, err
	}
	session, err := host.NewSession(c)
	if err != nil {
		g.giveAddresses(addresses)
		return nil, errors.Join(err, host.Close())
	}
	g.guests.Go(func() {
		<-session.Done()
		if err := host.Close(); err != nil {
			g.log.Warn("a host did not close cleanly", "addresses", addresses, "error", err)
		}
		g.giveAddresses(addresses)
	})
	return session, nil
}

func (n *Network) takeAddresses() (list []netip.Addr, err error) {
	for _, p := range n.pools {
		a, err := p.take()
		if err != nil {
			n.giveAddresses(list)
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// giveAddresses gives them back, each to the pool in the place of its own.
func (n *Network) giveAddresses(list []netip.Addr) {
	for i, a := range list {
		n.pools[i].give(a)
	}
}
