// SPDX-License-Identifier: Apache-2.0

package cmdtest

import (
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/vishvananda/netlink"
)

// Eth0 returns eth0 of a host of labtest.
func Eth0(t *testing.T, ns *lab.Namespace) netlink.Link {
	t.Helper()
	link, err := ns.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// RemoveAddress removes an address with its prefix length from eth0.
func RemoveAddress(t *testing.T, ns *lab.Namespace, cidr string) {
	t.Helper()
	address, err := netlink.ParseAddr(cidr)
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Netlink().AddrDel(Eth0(t, ns), address); err != nil {
		t.Fatal(err)
	}
}

// SetMTU sets the MTU of eth0.
func SetMTU(t *testing.T, ns *lab.Namespace, mtu int) {
	t.Helper()
	if err := ns.Netlink().LinkSetMTU(Eth0(t, ns), mtu); err != nil {
		t.Fatal(err)
	}
}
