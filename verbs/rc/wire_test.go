// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/provider"
)

// The in-memory network of these tests.

const (
	addressA = "10.0.0.1"
	addressB = "10.0.0.2"
)

func addresses(text string) []netip.Addr {
	return []netip.Addr{netip.MustParseAddr(text), netip.MustParseAddr("fd00::" + text[len(text)-1:])}
}

// cards returns two cards on an in-memory network, which needs no privileges and no network interface.
func cards(options ...hca.Option) (a, b *hca.Card, err error) {
	network := memnet.New(1)
	if a, err = newCard(network, addressA, options...); err != nil {
		return nil, nil, err
	}
	b, err = newCard(network, addressB, options...)
	return a, b, err
}

// newCard returns a card on a host with an address.
func newCard(network *memnet.Network, address string, options ...hca.Option) (*hca.Card, error) {
	host, err := network.AddHost(address, addresses(address)...)
	if err != nil {
		return nil, err
	}
	return hca.New(host, options...)
}

// wire returns two contexts at the ends of an in-memory network.
func wire(t testing.TB) (a, b *verbs.Context) {
	t.Helper()
	left, right, err := cards()
	check(t, err)
	return contextOn(t, left), contextOn(t, right)
}

// ownWire is wire with cards that are run only by the goroutine that posts and polls.
func ownWire(t testing.TB) (a, b *verbs.Context) {
	t.Helper()
	left, right, err := cards(hca.WithoutWorker())
	check(t, err)
	return contextOn(t, left), contextOn(t, right)
}

// cutWire is wire with a function that cuts and restores the network.
func cutWire(t testing.TB) (a, b *verbs.Context, cut func(bool)) {
	t.Helper()
	network := memnet.New(1)
	t.Cleanup(func() { check(t, network.Close()) })
	var ends [2]*verbs.Context
	for i, address := range []string{addressA, addressB} {
		card, err := newCard(network, address)
		check(t, err)
		ends[i] = contextOn(t, card)
	}
	return ends[0], ends[1], func(off bool) {
		impairment := memnet.Impairment{}
		if off {
			impairment.Loss = 1
		}
		check(t, network.Impair(impairment))
	}
}

func contextOn(t testing.TB, card provider.Provider) *verbs.Context {
	t.Helper()
	c, err := verbs.Open(card)
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// sessionOf returns a separate program on a card, which is killed by its Close.
func sessionOf(t testing.TB, card *hca.Card) *verbs.Context {
	t.Helper()
	session, err := card.NewSession(hca.SessionConfig{})
	check(t, err)
	return contextOn(t, session)
}
