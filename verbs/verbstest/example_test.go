// SPDX-License-Identifier: Apache-2.0

package verbstest_test

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/verbstest"
)

// newPair returns two cards on an in-memory network.
func newPair(t *testing.T) verbstest.Pair {
	t.Parallel()
	n := memnet.New(0)
	t.Cleanup(func() { _ = n.Close() })
	return verbstest.Pair{A: end(t, n, "1"), B: end(t, n, "2"), Unreachable: netip.MustParseAddr("192.0.2.1")}
}

func end(t *testing.T, n *memnet.Network, number string) verbstest.End {
	e := verbstest.End{IPv4: netip.MustParseAddr("10.0.0." + number), IPv6: netip.MustParseAddr("fd00::" + number), LinkLocal: netip.MustParseAddr("fe80::" + number)}
	host, err := n.AddHost("host"+number, e.IPv4, e.IPv6, e.LinkLocal)
	if err != nil {
		t.Fatal(err)
	}
	card, err := hca.New(host)
	if err != nil {
		t.Fatal(err)
	}
	e.Provider, e.MAC, e.SetLink = card, host.MAC(), host.SetUp
	e.SetMTU = func(bytes int) { _ = host.SetMTU(bytes) }
	return e
}

// A test that runs the tests of every Provider on a Pair of cards on an in-memory network.
func ExampleRun() {
	_ = func(t *testing.T) { // as TestVerbs of the Provider's package
		verbstest.Run(t, newPair)
	}
}
