// SPDX-License-Identifier: Apache-2.0

package cardtest

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/ud"
)

// Depth is the capacity of each queue of a wire's ends, in messages.
const Depth = 64

// Options are the options of the ends of a wire.
var Options = ud.Options{QKey: card.TestQKey, RecvDepth: 2 * Depth, SendDepth: Depth}

// Wire returns two queue pairs on an in-memory network.
func Wire(t *testing.T) (left, right *card.Endpoint) {
	t.Helper()
	addr := func(s string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(s)} }
	a, b, err := hca.OpenPair(addr("10.77.0.1"), addr("10.77.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	return wireEnd(t, a), wireEnd(t, b)
}

func wireEnd(t *testing.T, opened *hca.Card) *card.Endpoint {
	t.Helper()
	d, err := card.Take(opened, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	e, err := card.OpenEndpoint(d, Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
