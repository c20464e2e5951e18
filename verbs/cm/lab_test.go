// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca"
	"golang.org/x/sys/unix"
)

// cardIn opens a card in a namespace.
func cardIn(t *testing.T, ns *lab.Namespace, name string) *verbs.Context {
	t.Helper()
	card, err := hca.Open(name, hca.InNamespace(ns.Path()), hca.WithStateDir(t.TempDir()))
	check(t, err)
	return open(t, card)
}

// The kernel's routes say which of a host's devices leads to a destination, to a router, and to a group.
func TestRoutesOfTheKernel(t *testing.T) {
	hosts := labtest.Routed(t)
	left, right := cardIn(t, hosts.Router, "eth1"), cardIn(t, hosts.Router, "eth2")
	cardIn(t, hosts.A, "eth0")
	far := cardIn(t, hosts.B, "eth0")
	check(t, hosts.Router.AddRoute("239.0.0.0/8", "10.78.0.2"))
	check(t, hosts.Router.AddRoute("10.99.0.0/16", "10.77.0.77")) // a router that is not there
	c := newChannel(t, left, right)
	for _, row := range []struct {
		dest, source string
		want         *verbs.Context
	}{
		{"10.77.0.1:1", "10.77.0.254", left}, {"[fd77::1]:1", "fd77::fe", left},
		{"10.78.0.2:1", "10.78.0.254", right}, {"[fd78::2]:1", "fd78::fe", right}, {"239.1.2.3:0", "10.78.0.254", right},
	} {
		id := newID(t, c)
		check(t, id.ResolveAddr(netip.AddrPort{}, addr(row.dest), waittest.Limit))
		expect(t, c, cm.EventAddrResolved)
		on(t, id, row.want)
		local, err := id.LocalAddr()
		check(t, err)
		if local.Addr() != netip.MustParseAddr(row.source) {
			t.Errorf("to %s from %v", row.dest, local)
		}
		check(t, id.Close())
	}
	id := newID(t, c)
	refused(t, id.ResolveAddr(addr("0.0.0.0:0"), addr("10.55.0.1:1"), waittest.Limit), verbs.ErrUnreachable) // no route
	check(t, id.ResolveAddr(addr("0.0.0.0:0"), addr("10.99.0.1:1"), 1))
	event, err := c.Get(guard(t))
	check(t, err)
	refused(t, event.Err(), unix.ETIMEDOUT)
	if event.Type != cm.EventAddrError {
		t.Error(event.Type)
	}

	// Cards of one namespace share their ports; those of others do not.
	first, second := newID(t, newChannel(t, left)), newID(t, newChannel(t, right))
	check(t, first.Bind(addr("0.0.0.0:7174")))
	refused(t, second.Bind(addr("10.78.0.254:7174")), unix.EADDRNOTAVAIL)
	check(t, newID(t, newChannel(t, far)).Bind(addr("0.0.0.0:7174")))
}
