// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Pair is two cards that reach each other, and a session on each. Beside and FramesUnseen may be left out.
type Pair struct {
	A, B End
	// FramesUnseen means that the network does not provide the source MAC and the flow label of received packets.
	FramesUnseen bool
	// Unreachable is an IPv4 address that is neither card's and that no route leads to.
	Unreachable netip.Addr
	// Beside gives another session on A's card; nil where there can be none.
	Beside func() provider.Provider
}

// End is a session that no Context has claimed, and its card. The card has an address of each
// kind. The functions change the card's world, and fail the test if they cannot; each may be nil,
// the other fields are required.
type End struct {
	Provider  provider.Provider
	IPv4      netip.Addr
	IPv6      netip.Addr // not a link-local one
	LinkLocal netip.Addr // of IPv6
	MAC       verbs.MAC  // which peers see

	SetLink       func(up bool)
	AddAddress    func(netip.Addr)
	RemoveAddress func(netip.Addr)
	SetMTU        func(bytes int) // the interface's
}

// Addresses are one of each kind.
func (e *End) Addresses() []netip.Addr { return []netip.Addr{e.IPv4, e.IPv6, e.LinkLocal} }

// Test is a promise of the API.
type Test struct {
	Name string
	Run  func(t *testing.T, w *World)
	// Rounds is how often it runs, with a new pair each: it looks for what happens seldom. See Often.
	Rounds int
	// Needs reports whether the pair supports the changes of the test; nil: no requirements.
	Needs func(p *Pair) bool
}

// IsWhole fails the test if a required field of the pairs is empty. The outer test ends when the
// inner one has, though newPair may call t.Parallel.
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
