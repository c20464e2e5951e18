// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Pair contains two cards that reach each other, and a session on each. Beside and FramesUnseen are optional.
type Pair struct {
	A, B End
	// FramesUnseen means that the network does not provide the source MAC and the flow label of received packets.
	FramesUnseen bool
	// Unreachable is an IPv4 address without a route. Neither card has it.
	Unreachable netip.Addr
	// Beside returns another session on A's card. It is nil if that is not possible.
	Beside func() provider.Provider
}

// End is a session that no Context has claimed, and its card. The card has an address of each kind. The functions
// change the card's host interface, and fail the test on an error. They are optional, and the other fields required.
type End struct {
	Provider  provider.Provider
	IPv4      netip.Addr
	IPv6      netip.Addr // not link-local
	LinkLocal netip.Addr // IPv6
	MAC       verbs.MAC  // source address of its frames

	SetLink       func(up bool)
	AddAddress    func(netip.Addr)
	RemoveAddress func(netip.Addr)
	SetMTU        func(bytes int) // MTU of the interface
}

// Addresses returns the three addresses.
func (e *End) Addresses() []netip.Addr { return []netip.Addr{e.IPv4, e.IPv6, e.LinkLocal} }

// Test is a test of a Provider.
type Test struct {
	Name string
	Run  func(t *testing.T, w *World)
	// Rounds is the number of runs, each with a new pair, for tests of rare events. See Often.
	Rounds int
	// Needs reports whether the pair supports the test. nil means no requirements.
	Needs func(p *Pair) bool
}

// IsWhole reports whether the pairs have all required fields, and fails the test otherwise. The outer test ends after
// the inner one, even if newPair calls t.Parallel.
func IsWhole(t *testing.T, newPair func(t *testing.T) Pair) bool {
	t.Helper()
	return t.Run("pair", func(t *testing.T) {
		t.Run("whole", func(t *testing.T) {
			pair := newPair(t)
			if field := pair.empty(); field != "" {
				t.Fatalf("verbstest: Pair.%s is empty; set it in newPair", field)
			}
		})
	})
}

// empty returns the name of an empty required field, or "".
func (p *Pair) empty() string {
	for _, end := range []struct {
		name string
		*End
	}{{"A.", &p.A}, {"B.", &p.B}} {
		if field := end.empty(); field != "" {
			return end.name + field
		}
	}
	if !p.Unreachable.IsValid() {
		return "Unreachable"
	}
	return ""
}

func (e *End) empty() string {
	switch {
	case e.Provider == nil:
		return "Provider"
	case e.IPv4 == netip.Addr{}:
		return "IPv4"
	case e.IPv6 == netip.Addr{}:
		return "IPv6"
	case e.LinkLocal == netip.Addr{}:
		return "LinkLocal"
	case e.MAC == verbs.MAC{}:
		return "MAC"
	}
	return ""
}
