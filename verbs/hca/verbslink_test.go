package hca

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest"
	"github.com/vishvananda/netlink"
)

// Cards on two hosts pass the same tests, through XDP. Four pairs of hosts stay; each test has cards of
// its own.
func TestVerbsOnLink(t *testing.T) { verbsOnLink(t) }

// And over UDP sockets.
func TestVerbsOverUDP(t *testing.T) { verbsOnLink(t, WithNetwork(NetworkUDP)) }

func verbsOnLink(t *testing.T, options ...Option) {
	t.Parallel()
	pool := labtest.NewPool(t, 8)
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		hosts := pool.Take(t)
		options := append(options[:len(options):len(options)], WithStateDir(t.TempDir()))
		a, b := open(t, hosts.A, options...), open(t, hosts.B, options...)
		return verbstest.Pair{
			A:            linkEnd(t, a, hosts.A, address("10.77.0.1"), address("fd77::1"), address(linkLocal(t, hosts.A))),
			B:            linkEnd(t, b, hosts.B, address("10.77.0.2"), address("fd77::2"), address(linkLocal(t, hosts.B))),
			FramesUnseen: a.host.Modes().Socket == "udp",
			Unreachable:  address("192.0.2.1"), Beside: func() provider.Provider { return beside(t, a) },
		}
	})
}

// linkEnd is a card on a host's eth0.
func linkEnd(t *testing.T, card *Card, host *lab.Namespace, v4, v6, linkLocal netip.Addr) verbstest.End {
	s := &station{device: card}
	return verbstest.End{
		Provider: card, IPv4: v4, IPv6: v6, LinkLocal: linkLocal, MAC: s.mac(),
		SetLink: func(up bool) {
			if up {
				check(t, host.Netlink().LinkSetUp(eth0(t, host)))
				restore(t, host, v6)
			} else {
				check(t, host.Netlink().LinkSetDown(eth0(t, host)))
			}
		},
		AddAddress:    func(a netip.Addr) { check(t, host.AddAddress("eth0", subnet(a))) },
		RemoveAddress: func(a netip.Addr) { delAddress(t, host, subnet(a)) },
		SetMTU: func(bytes int) {
			check(t, host.Netlink().LinkSetMTU(eth0(t, host), bytes))
			restore(t, host, v6)
		},
	}
}

// subnet is an address as the hosts' subnets have it.
func subnet(a netip.Addr) string {
	if a.Is4() {
		return a.String() + "/24"
	}
	return a.String() + "/64"
}

// restore gives eth0 back the IPv6 address that the kernel forgets while it is down, or its MTU
// too small for IPv6.
func restore(t *testing.T, host *lab.Namespace, v6 netip.Addr) {
	t.Helper()
	link := eth0(t, host)
	if link.Attrs().MTU < 1280 {
		return
	}
	parsed, err := netlink.ParseAddr(subnet(v6))
	check(t, err)
	check(t, host.Netlink().AddrReplace(link, parsed))
}
