package hca

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest"
)

// A card at the end of a wire in memory is a whole Provider.
func TestVerbsOverTheWire(t *testing.T) {
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		t.Parallel()
		return wireEnds(t)
	})
}

// So is any session on a card whose own session is in use, with limits of its own.
func TestVerbsInAnotherSession(t *testing.T) {
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		t.Parallel()
		pair := wireEnds(t)
		newStation(t, pair.A.Provider.(*Card))
		pair.A.Provider = pair.Beside()
		return pair
	})
}

func wireEnds(t *testing.T) verbstest.Pair {
	a, b, err := OpenWire(addressesA, addressesB)
	check(t, err)
	t.Cleanup(func() { check(t, errors.Join(a.Close(), b.Close())) })
	return verbstest.Pair{
		A: wireEnd(a, addressesA), B: wireEnd(b, addressesB), Unreachable: address("192.0.2.1"),
		Beside: func() verbs.Provider { return beside(t, a) },
	}
}

// beside makes another session on a card.
func beside(t *testing.T, card *Card) verbs.Provider {
	t.Helper()
	session, err := card.NewSession(SessionConfig{Limits: Limits{PDs: 100, MRs: 110, CQs: 120, QPs: 130, AHs: 140}})
	check(t, err)
	return session
}

// wireEnd is a card on a wire in memory, which takes its host's word for the world.
func wireEnd(card *Card, addresses []netip.Addr) verbstest.End {
	s := &station{device: card}
	return verbstest.End{
		Provider: card, IPv4: addresses[0], IPv6: addresses[1], LinkLocal: addresses[2], MAC: s.mac(), Drops: s.drops,
		SetLink: s.link,
		AddAddress: func(a netip.Addr) {
			s.hostSays(func(p *portStatus) { p.addresses = append(slices.Clone(p.addresses), a) })
		},
		RemoveAddress: func(a netip.Addr) {
			s.hostSays(func(p *portStatus) {
				p.addresses = slices.DeleteFunc(slices.Clone(p.addresses), func(b netip.Addr) bool { return a == b })
			})
		},
		SetMTU: func(bytes int) { s.hostSays(func(p *portStatus) { p.mtu = bytes }) },
	}
}
