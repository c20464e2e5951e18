// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest"
)

// So is one of daemons on two hosts, through XDP. Four pairs of daemons stay; each test has clients of its own.
func TestVerbsOverDaemonsOnLink(t *testing.T) {
	t.Parallel()
	type linked struct{ a, b onLink }
	pool := labtest.NewPool(4, func() linked {
		hosts := labtest.Pair(t)
		return linked{linkDaemon(t, hosts.A), linkDaemon(t, hosts.B)}
	})
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		hosts := pool.Take(t)
		return verbstest.Pair{
			A:           linkEnd(t, hosts.a, "10.77.0.1", "fd77::1"),
			B:           linkEnd(t, hosts.b, "10.77.0.2", "fd77::2"),
			Unreachable: netip.MustParseAddr("192.0.2.1"), Beside: func() provider.Provider { return hosts.a.dial(t) },
		}
	})
}

// limited is a card whose sessions have limits.
type limited struct {
	*hca.Card
	limits hca.Limits
}

func (l limited) NewSession(c hca.SessionConfig) (*hca.Session, error) {
	c.Limits = l.limits
	return l.Card.NewSession(c)
}

// shipped are limits as roced's configuration has them for a user. TestVerbsOverDaemons reaches a card's,
// which are far higher.
var shipped = hca.Limits{PDs: 1024, MRs: 8192, CQs: 4096, QPs: 4096, AHs: 16384, SRQs: 1024, CompChannels: 1024}

// onLink is a daemon with a card on a host's eth0.
type onLink struct {
	*daemon
	card *hca.Card
}

func linkDaemon(t *testing.T, host *lab.Namespace) onLink {
	t.Helper()
	card, err := hca.Open("eth0", hca.InNamespace(host.Path()), hca.WithStateDir(t.TempDir()), hca.WithoutInline())
	check(t, err)
	t.Cleanup(func() { check(t, card.Close()) })
	return onLink{startDaemon(t, Config{Devices: []Source{limited{card, shipped}}, PrivilegedGroup: -1}), card}
}

func linkEnd(t *testing.T, d onLink, v4, v6 string) verbstest.End {
	t.Helper()
	end := verbstest.End{Provider: d.dial(t), IPv4: netip.MustParseAddr(v4), IPv6: netip.MustParseAddr(v6)}
	device, err := provider.Do(d.card, provider.QueryDevice, provider.None{})
	check(t, err)
	for i := range 3 { // an EUI-64 of the MAC
		end.MAC[i], end.MAC[5-i] = byte(device.NodeGUID>>(56-8*i)), byte(device.NodeGUID>>(8*i))
	}
	end.MAC[0] ^= 2
	table, err := provider.Do(d.card, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: 1})
	check(t, err)
	for _, entry := range table.Entries {
		if entry.GID.IsLinkLocal() && !entry.GID.IsIPv4() {
			end.LinkLocal = entry.GID.Addr()
		}
	}
	return end
}
