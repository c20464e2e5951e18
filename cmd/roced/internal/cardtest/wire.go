package cardtest

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// Depth is how many messages an end of a wire can hold each way.
const Depth = 64

// Size is the longest message of an end of a wire, in bytes.
const Size = 1024

// Wire is two queue pairs on a wire in memory, which needs no privileges.
func Wire(t *testing.T) (left, right *card.Endpoint) {
	t.Helper()
	addr := func(s string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(s)} }
	a, b, err := hca.OpenWire(addr("10.77.0.1"), addr("10.77.0.2"))
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
	e, err := card.NewEndpoint(d, card.EndpointAttr{Depth: Depth, Size: Size, QKey: card.TestQKey})
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

// Aimed is a Wire whose ends send to each other.
func Aimed(t *testing.T) (left, right *card.Endpoint) {
	t.Helper()
	left, right = Wire(t)
	Aim(t, left, right)
	Aim(t, right, left)
	return left, right
}

// Aim has one end send to the other.
func Aim(t *testing.T, from, to *card.Endpoint) {
	t.Helper()
	source, err := from.Device.ChooseGID(card.AnyGID, netip.Addr{}, verbs.GID{})
	if err != nil {
		t.Fatal(err)
	}
	target, err := to.Device.ChooseGID(card.AnyGID, netip.Addr{}, verbs.GID{})
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Aim(source.Index, target.GID, to.QP.Number()); err != nil {
		t.Fatal(err)
	}
}
