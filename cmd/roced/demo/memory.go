// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
)

// newMemoryPair creates two hosts on an in-memory network.
func newMemoryPair(ctx context.Context, log *slog.Logger) (*pairLab, error) {
	l := &pairLab{left: &host{name: "left"}, right: &host{name: "right"}, network: memnet.New(0)}
	open := func() (err error) {
		for i, h := range l.hosts() {
			var own []string
			for _, a := range addresses {
				own = append(own, []string{a.left, a.right}[i])
			}
			if h.Device, err = openMemory(l.network, h.name, own, log); err != nil {
				return err
			}
			if h.Endpoint, err = card.OpenEndpoint(h.Device, endpointOptions(card.TestQKey)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := build(ctx, l, open); err != nil {
		return nil, err
	}
	return l, nil
}

// newMemorySwitch creates three hosts on an in-memory network. All of them receive frames for
// groups.
func newMemorySwitch(ctx context.Context, log *slog.Logger) (*switchLab, error) {
	l := newStations()
	l.network = memnet.New(0)
	open := func() (err error) {
		for _, s := range l.stations() {
			if s.Device, err = openMemory(l.network, s.name, s.addresses, log); err != nil {
				return err
			}
			if err = s.listen(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := build(ctx, l, open); err != nil {
		return nil, err
	}
	return l, nil
}

// openMemory creates a host on an in-memory network, and opens its card.
func openMemory(network *memnet.Network, name string, addresses []string, log *slog.Logger) (*card.Device, error) {
	var own []netip.Addr
	for _, a := range addresses {
		own = append(own, netip.MustParseAddr(a))
	}
	on, err := network.AddHost(name, own...)
	if err != nil {
		return nil, err
	}
	device, err := hca.New(on, hca.WithMTU(verbs.MTU1024)) // without a logger: at the end one host is closed after the other
	if err != nil {
		return nil, err
	}
	return card.Take(device, log)
}
