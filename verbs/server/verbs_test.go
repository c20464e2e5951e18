// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest"
)

// A client of a daemon is a whole Provider: two daemons, on an in-memory network. Sessions may have as much as a card in
// the long run, except for AHs, of which it may have 131,072; else a fifth of it. The tests of verbs/hca reach all that a
// card may have, and each object here costs two commands.
func TestVerbsOverDaemons(t *testing.T) {
	t.Parallel()
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		t.Parallel()
		most := often(16384)
		limits := hca.Limits{PDs: most, MRs: often(65536), CQs: most, QPs: most, AHs: most, SRQs: most}
		return clientPair(t, newRigOf(t, anyone, func(card *hca.Card) Source { return limited{card, limits} }))
	})
}

func clientPair(t *testing.T, r *rig) verbstest.Pair {
	return verbstest.Pair{
		A: clientEnd(t, r.a, r.hosts[0], addressesA), B: clientEnd(t, r.b, r.hosts[1], addressesB),
		Unreachable: netip.MustParseAddr("192.0.2.1"), Beside: func() provider.Provider { return r.a.dial(t) },
	}
}

func clientEnd(t *testing.T, d *daemon, h *memnet.Host, addresses []netip.Addr) verbstest.End {
	t.Helper()
	addresses = slices.Clone(addresses)
	return verbstest.End{
		Provider: d.dial(t), IPv4: addresses[0], IPv6: addresses[1], LinkLocal: addresses[2], MAC: h.MAC(),
		SetLink: h.SetUp, SetMTU: func(bytes int) { check(t, h.SetMTU(bytes)) },
		AddAddress: func(a netip.Addr) {
			addresses = append(addresses, a)
			check(t, h.SetAddresses(addresses...))
		},
		RemoveAddress: func(a netip.Addr) {
			addresses = slices.DeleteFunc(addresses, func(b netip.Addr) bool { return a == b })
			check(t, h.SetAddresses(addresses...))
		},
	}
}
