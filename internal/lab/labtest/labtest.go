// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/needs"
)

// New creates a namespace that is removed when the test ends. It skips the test unless it runs as root.
func New(t testing.TB, prefix string) *lab.Namespace {
	t.Helper()
	needs.Root(t)
	ns, err := lab.New(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// PairLab is two hosts on one wire. The link of each is named "eth0".
type PairLab struct {
	A, B *lab.Namespace
}

// Pair creates two namespaces joined by a veth pair; see the package comment.
func Pair(t testing.TB, options ...lab.VethOption) *PairLab {
	t.Helper()
	if cards := Cards(); len(cards) > 0 {
		return pairOfCards(t, cards, options...)
	}
	pair := &PairLab{A: New(t, "labtest-a"), B: New(t, "labtest-b")}
	if err := lab.Veth(pair.A, pair.B, "eth0", "eth0", options...); err != nil {
		t.Fatal(err)
	}
	pair.addAddresses(t)
	return pair
}

// addAddresses adds the addresses of both hosts.
func (p *PairLab) addAddresses(t testing.TB) {
	t.Helper()
	addAddresses(t, p.A, "10.77.0.1/24", "fd77::1/64")
	addAddresses(t, p.B, "10.77.0.2/24", "fd77::2/64")
}

func addAddresses(t testing.TB, ns *lab.Namespace, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		if err := ns.AddAddress("eth0", address); err != nil {
			t.Fatal(err)
		}
	}
}

// BadPair creates two namespaces joined by an impaired wire.
func BadPair(t testing.TB, seed uint64, i lab.Impairment, options ...lab.VethOption) *PairLab {
	t.Helper()
	pair, middle := &PairLab{A: New(t, "labtest-a"), B: New(t, "labtest-b")}, New(t, "labtest-w")
	for _, err := range []error{lab.Veth(pair.A, middle, "eth0", "a", options...), lab.Veth(pair.B, middle, "eth0", "b", options...)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wire, err := lab.NewBadWire(middle, "a", "b", seed, i)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := wire.Close(); err != nil {
			t.Error(err)
		}
	})
	pair.addAddresses(t)
	return pair
}
