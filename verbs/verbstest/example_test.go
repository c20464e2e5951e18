package verbstest_test

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/verbstest"
)

// newPair makes two cards on a wire in memory.
func newPair(t *testing.T) verbstest.Pair {
	t.Parallel()
	w, err := hca.NewWire(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return verbstest.Pair{A: end(t, w, "1"), B: end(t, w, "2"), Unreachable: netip.MustParseAddr("192.0.2.1")}
}

func end(t *testing.T, w *hca.Wire, n string) verbstest.End {
	e := verbstest.End{IPv4: netip.MustParseAddr("10.0.0." + n), IPv6: netip.MustParseAddr("fd00::" + n), LinkLocal: netip.MustParseAddr("fe80::" + n)}
	host, err := w.AddHost("host"+n, e.IPv4, e.IPv6, e.LinkLocal)
	if err != nil {
		t.Fatal(err)
	}
	e.Provider, e.MAC, e.SetLink = host, host.MAC(), host.SetUp
	e.SetMTU = func(bytes int) { _ = host.SetMTU(bytes) }
	return e
}

// A Pair of cards on a wire in memory, under the tests that every Provider must pass.
func ExampleRun() {
	_ = func(t *testing.T) { // as TestVerbs of the Provider's package
		verbstest.Run(t, newPair)
	}
}
