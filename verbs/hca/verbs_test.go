// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest"
)

// A card at the end of an in-memory network is a complete Provider.
func TestVerbsOverTheWire(t *testing.T) {
	t.Parallel()
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		t.Parallel()
		return wireEnds(t)
	})
}

// So is a card with several workers, here through a session of the last worker; the session beside it has the same
// worker, since programs of different workers cannot share XRC domains.
func TestVerbsOfSeveralWorkers(t *testing.T) {
	t.Parallel()
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		t.Parallel()
		pair := wireEnds(t, WithWorkers(3))
		card := pair.A.Provider.(*hostCard).Card
		newStation(t, card)
		session := pair.Beside().(*Session)
		engine := session.entry.Engine()
		if engine == card.session.entry.Engine() {
			t.Error("one worker serves two sessions and another serves none")
		}
		pair.A.Provider = session
		beside := pair.Beside
		pair.Beside = func() provider.Provider { return servedBy(t, engine, beside) }
		return pair
	})
}

// servedBy creates sessions until an engine serves one.
func servedBy(t *testing.T, e *datapath.Engine, beside func() provider.Provider) provider.Provider {
	for range 2 * MaxWorkers {
		if s := beside().(*Session); s.entry.Engine() == e {
			return s
		}
	}
	t.Fatal("the engine serves no session")
	return nil
}

// TestXRCDomainOfAnotherWorker: programs of one worker share a domain; a program of another worker gets an error.
func TestXRCDomainOfAnotherWorker(t *testing.T) {
	t.Parallel()
	pair := wireEnds(t, WithWorkers(2))
	first := pair.A.Provider.(*hostCard).session.entry.Engine()
	file, err := os.CreateTemp(t.TempDir(), "domain")
	check(t, err)
	defer file.Close()
	open := provider.OpenXRCDRequest{File: file, Create: true}
	for range 2 {
		_, err = provider.Do(servedBy(t, first, pair.Beside), provider.OpenXRCD, open)
		check(t, err)
	}
	other := pair.Beside().(*Session)
	for other.entry.Engine() == first {
		other = pair.Beside().(*Session)
	}
	if _, err := other.xrcds.open(open); !errors.Is(err, verbs.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

// So is another session, with its own limits, on a card whose own session is in use.
func TestVerbsInAnotherSession(t *testing.T) {
	t.Parallel()
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		t.Parallel()
		pair := wireEnds(t)
		newStation(t, pair.A.Provider.(*hostCard).Card)
		pair.A.Provider = pair.Beside()
		return pair
	})
}

func wireEnds(t *testing.T, options ...Option) verbstest.Pair {
	n := newNetwork(t, 0)
	a, b := wireEnd(t, n, "a", addressesA, options...), wireEnd(t, n, "b", addressesB, options...)
	card := a.Provider.(*hostCard).Card
	return verbstest.Pair{A: a, B: b, Unreachable: address("192.0.2.1"), Beside: func() provider.Provider { return beside(t, card) }}
}

// beside creates another session on a card.
func beside(t *testing.T, card *Card) provider.Provider {
	t.Helper()
	return newSession(t, card, SessionConfig{Limits: Limits{PDs: 100, MRs: 110, CQs: 120, QPs: 130, AHs: 140}})
}

// newSession creates a session that ends with the test.
func newSession(t testing.TB, card *Card, config SessionConfig) *Session {
	t.Helper()
	session, err := card.NewSession(config)
	check(t, err)
	t.Cleanup(func() { check(t, session.Close()) })
	return session
}

// wireEnd returns a host on an in-memory network.
func wireEnd(t *testing.T, n *memnet.Network, name string, addresses []netip.Addr, options ...Option) verbstest.End {
	t.Helper()
	h := newHost(t, n, name, addresses, options...)
	addresses = slices.Clone(addresses)
	return verbstest.End{
		Provider: h, IPv4: addresses[0], IPv6: addresses[1], LinkLocal: addresses[2], MAC: h.MAC(),
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
