// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest"
	"github.com/vishvananda/netlink"
)

// Cards on two hosts pass the same tests, through XDP. Eight pairs of cards are reused; each test has its own sessions.
func TestVerbsOnLink(t *testing.T) { verbsOnLink(t, 1) }

// The same over UDP sockets.
func TestVerbsOverUDP(t *testing.T) { verbsOnLink(t, 1, WithNetwork(NetworkUDP)) }

// The same with several workers: each serves some of the tests.
func TestVerbsOnLinkOfSeveralWorkers(t *testing.T) { verbsOnLink(t, 3, WithWorkers(3)) }

func verbsOnLink(t *testing.T, workers int, options ...Option) {
	t.Parallel()
	options = append(options, WithStateDir(t.TempDir()))
	pool := labtest.NewPool(8, func() *linked { return newLinked(t, workers, options) })
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		hosts := pool.Take(t)
		hosts.lend(t)
		pair := verbstest.Pair{
			A:            hosts.end(t, hosts.a, hosts.A, "10.77.0.1", "fd77::1"),
			B:            hosts.end(t, hosts.b, hosts.B, "10.77.0.2", "fd77::2"),
			FramesUnseen: hosts.a.host.Modes().Socket == "udp",
			Unreachable:  address("192.0.2.1"),
		}
		engine := pair.A.Provider.(*Session).entry.Engine() // sessions of one engine share XRC domains
		pair.Beside = func() provider.Provider {
			return servedBy(t, engine, func() provider.Provider { return beside(t, hosts.a) })
		}
		return pair
	})
}

// linked is two hosts on one wire, and their cards. A test that changes the state below the cards requires new ones for
// the next test.
type linked struct {
	*labtest.PairLab
	workers int
	options []Option
	a, b    *Card // nil: not open
	changed bool
}

func newLinked(t *testing.T, workers int, options []Option) *linked {
	t.Helper()
	l := &linked{PairLab: labtest.Pair(t, lab.WithQueues(workers)), workers: workers, options: options}
	t.Cleanup(func() { l.close(t) })
	return l
}

// lend opens the cards for a test.
func (l *linked) lend(t *testing.T) {
	t.Helper()
	if l.b == nil {
		l.close(t) // if the other could not be opened
		l.a = openCard(t, l.A, l.options...)
		l.b, l.changed = openCard(t, l.B, l.options...), false
		waitForAddresses(t, l.a, "10.77.0.1", "fd77::1", linkLocal(t, l.A))
		waitForAddresses(t, l.b, "10.77.0.2", "fd77::2", linkLocal(t, l.B))
	}
	if attr, err := provider.Do(l.a, provider.QueryDevice, provider.None{}); err != nil || int(attr.Workers) != l.workers {
		t.Fatalf("%d workers, want %d: %v", attr.Workers, l.workers, err)
	}
	takeAll(t, l.a)
	takeAll(t, l.b)
	t.Cleanup(func() {
		if l.changed {
			l.close(t)
		}
	})
}

// takeAll waits until a card has processed all its packets: a test's first packets would find a full ring while the
// worker still drops those of the previous test.
func takeAll(t *testing.T, card *Card) {
	t.Helper()
	eventually(t, "empty rings of the card", func() bool {
		s, err := card.Statistics()
		check(t, err)
		redirected := uint64(0)
		for _, c := range s.Steering {
			if c.Name == bpf.Redirected.String() {
				redirected = c.Value
			}
		}
		return redirected <= s.Engine.Received-s.Engine.Loopback+s.Socket.RxDropped+s.Socket.RxRingFull+s.Socket.Malformed
	})
}

// waitForAddresses waits until a card has addresses: after the link comes up, IPv6 addresses are tentative for a while.
func waitForAddresses(t *testing.T, card *Card, addresses ...string) {
	t.Helper()
	eventually(t, "the host's addresses", func() bool {
		table, err := provider.Do(card, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: 1})
		check(t, err)
		return !slices.ContainsFunc(addresses, func(a string) bool {
			return !slices.ContainsFunc(table.Entries, func(e verbs.GIDEntry) bool { return e.GID == gid(a) })
		})
	})
}

func (l *linked) close(t *testing.T) {
	t.Helper()
	for _, card := range []*Card{l.a, l.b} {
		if card != nil {
			check(t, card.Close())
		}
	}
	l.a, l.b = nil, nil
}

// end returns a session of a test on the card of a host's eth0.
func (l *linked) end(t *testing.T, card *Card, host *lab.Namespace, v4, v6 string) verbstest.End {
	t.Helper()
	link := func() netlink.Link { // to change it
		l.changed = true
		return eth0(t, host)
	}
	s := &station{device: card}
	return verbstest.End{
		Provider: beside(t, card), IPv4: address(v4), IPv6: address(v6), LinkLocal: address(linkLocal(t, host)), MAC: s.mac(),
		SetLink: func(up bool) {
			if up {
				check(t, host.Netlink().LinkSetUp(link()))
				restore(t, host, v6)
			} else {
				check(t, host.Netlink().LinkSetDown(link()))
			}
		},
		AddAddress: func(a netip.Addr) {
			l.changed = true
			check(t, host.AddAddress("eth0", subnet(a)))
		},
		RemoveAddress: func(a netip.Addr) { delAddress(t, host, subnet(a)) },
		SetMTU: func(bytes int) {
			check(t, host.Netlink().LinkSetMTU(link(), bytes))
			restore(t, host, v6)
		},
	}
}

// subnet returns an address with the prefix length of the hosts' subnets.
func subnet(a netip.Addr) string {
	if a.Is4() {
		return a.String() + "/24"
	}
	return a.String() + "/64"
}

// restore restores the IPv6 address of eth0, which the kernel removes while the interface is down or its MTU is too
// small for IPv6.
func restore(t *testing.T, host *lab.Namespace, v6 string) {
	t.Helper()
	link := eth0(t, host)
	if link.Attrs().MTU < 1280 {
		return
	}
	parsed, err := netlink.ParseAddr(subnet(address(v6)))
	check(t, err)
	check(t, host.Netlink().AddrReplace(link, parsed))
}
