package rc_test

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
)

// All that these tests use of the network in memory.

const (
	addressA = "10.0.0.1"
	addressB = "10.0.0.2"
)

func addresses(text string) []netip.Addr {
	return []netip.Addr{netip.MustParseAddr(text), netip.MustParseAddr("fd00::" + text[len(text)-1:])}
}

// cards are two cards on a wire in memory, which needs no privilege and no network.
func cards() (a, b *hca.Card, err error) {
	return hca.OpenWire(addresses(addressA), addresses(addressB))
}

// wire is two contexts at the ends of a wire in memory.
func wire(t testing.TB) (a, b *verbs.Context) {
	t.Helper()
	left, right, err := cards()
	check(t, err)
	return contextOn(t, left), contextOn(t, right)
}

// cutWire is the same, and what cuts it, or ends that.
func cutWire(t testing.TB) (a, b *verbs.Context, cut func(bool)) {
	t.Helper()
	w, err := hca.NewWire(1)
	check(t, err)
	t.Cleanup(func() { check(t, w.Close()) })
	var ends [2]*verbs.Context
	for i, text := range []string{addressA, addressB} {
		host, err := w.AddHost(text, addresses(text)...)
		check(t, err)
		ends[i] = contextOn(t, host)
	}
	return ends[0], ends[1], func(off bool) {
		impairment := hca.Impairment{}
		if off {
			impairment.Loss = 1
		}
		check(t, w.Impair(impairment))
	}
}

func contextOn(t testing.TB, card provider.Provider) *verbs.Context {
	t.Helper()
	c, err := verbs.Open(card)
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// sessionOf is a program of its own on a card, which is killed by its Close.
func sessionOf(t testing.TB, card *hca.Card) *verbs.Context {
	t.Helper()
	session, err := card.NewSession(hca.SessionConfig{})
	check(t, err)
	return contextOn(t, session)
}
