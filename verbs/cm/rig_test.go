// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/provider"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var (
	check, refused = errtest.Check, errtest.Refused
	guard          = waittest.Guard
)

func addr(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

// newNetwork returns an in-memory network without hosts.
func newNetwork(t testing.TB) *memnet.Network {
	t.Helper()
	n := memnet.New(1)
	t.Cleanup(func() { check(t, n.Close()) })
	return n
}

// newCard is a card on a new host.
func newCard(t testing.TB, n *memnet.Network, name string, addresses ...string) (*hca.Card, *memnet.Host) {
	t.Helper()
	var list []netip.Addr
	for _, text := range addresses {
		list = append(list, netip.MustParseAddr(text))
	}
	host, err := n.AddHost(name, list...)
	check(t, err)
	card, err := hca.New(host)
	check(t, err)
	return card, host
}

// device is a program's on such a card.
func device(t testing.TB, n *memnet.Network, name string, addresses ...string) *verbs.Context {
	t.Helper()
	card, _ := newCard(t, n, name, addresses...)
	return open(t, card)
}

func open(t testing.TB, session provider.Provider) *verbs.Context {
	t.Helper()
	ctx, err := verbs.Open(session)
	check(t, err)
	t.Cleanup(func() { check(t, ctx.Close()) })
	return ctx
}

func newChannel(t testing.TB, devices ...*verbs.Context) *cm.EventChannel {
	t.Helper()
	c, err := cm.CreateEventChannel(devices...)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newID(t testing.TB, c *cm.EventChannel) *cm.ID {
	t.Helper()
	id, err := c.CreateID(cm.PortSpaceUDP, nil)
	check(t, err)
	t.Cleanup(func() { _ = id.Close() })
	return id
}

func expect(t testing.TB, c *cm.EventChannel, want cm.EventType) *cm.Event {
	t.Helper()
	event, err := c.Expect(guard(t), want)
	check(t, err)
	return event
}
