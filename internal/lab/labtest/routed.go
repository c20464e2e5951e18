// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"errors"
	"testing"

	"github.com/roced/roced/internal/lab"
)

// RouterLab is two hosts in two networks, and the router between them.
//
//	A eth0 10.77.0.1/24 fd77::1/64 ── eth1 Router eth2 ── eth0 10.78.0.2/24 fd78::2/64 B
//
// The router's addresses end with 254 and fe.
type RouterLab struct {
	PairLab
	Router *lab.Namespace
}

// Routed creates three namespaces: a router, and a host in each of its two networks.
func Routed(t testing.TB, options ...lab.VethOption) *RouterLab {
	t.Helper()
	l := &RouterLab{PairLab: PairLab{A: New(t, "labtest-a"), B: New(t, "labtest-b")}, Router: New(t, "labtest-router")}
	if err := errors.Join(l.connect(options), l.Router.Forward()); err != nil {
		t.Fatal(err)
	}
	addAddresses(t, l.A, "10.77.0.1/24", "fd77::1/64")
	addAddresses(t, l.B, "10.78.0.2/24", "fd78::2/64")
	if err := l.route(); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *RouterLab) connect(options []lab.VethOption) error {
	return errors.Join(
		lab.Veth(l.A, l.Router, "eth0", "eth1", options...), lab.Veth(l.B, l.Router, "eth0", "eth2", options...),
		l.Router.AddAddress("eth1", "10.77.0.254/24"), l.Router.AddAddress("eth1", "fd77::fe/64"),
		l.Router.AddAddress("eth2", "10.78.0.254/24"), l.Router.AddAddress("eth2", "fd78::fe/64"))
}

func (l *RouterLab) route() error {
	return errors.Join(
		l.A.AddRoute("10.78.0.0/24", "10.77.0.254"), l.A.AddRoute("fd78::/64", "fd77::fe"),
		l.B.AddRoute("10.77.0.0/24", "10.78.0.254"), l.B.AddRoute("fd77::/64", "fd78::fe"))
}
