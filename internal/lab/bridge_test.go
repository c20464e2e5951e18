// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
)

// TestBridgeSnoops: the table has an entry for a group and a port while the host on the port is a member.
func TestBridgeSnoops(t *testing.T) {
	hosts := labtest.Switched(t)
	group4, group6 := netip.MustParseAddr("239.7.7.7"), netip.MustParseAddr("ff05::77")
	want := []lab.MDBEntry{{Port: hosts.PortA, Group: group4}, {Port: hosts.PortA, Group: group6}}
	leave := member(t, hosts.A, group4, group6)
	awaitMDB(t, hosts.Bridge, "members", func(list []lab.MDBEntry) bool {
		return slices.Contains(list, want[0]) && slices.Contains(list, want[1])
	})
	list, err := hosts.Bridge.MDB()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []netip.Addr{group4, group6} {
		if slices.Contains(list, lab.MDBEntry{Port: hosts.PortB, Group: group}) {
			t.Errorf("the port of a host that is not a member of %v is in %v", group, list)
		}
	}
	leave()
	awaitMDB(t, hosts.Bridge, "no members", func(list []lab.MDBEntry) bool {
		return !slices.Contains(list, want[0]) && !slices.Contains(list, want[1])
	})
}

func awaitMDB(t *testing.T, bridge *lab.Bridge, what string, is func([]lab.MDBEntry) bool) {
	t.Helper()
	for deadline := time.Now().Add(waittest.Limit); ; time.Sleep(5 * time.Millisecond) {
		list, err := bridge.MDB()
		if err != nil {
			t.Fatal(err)
		}
		if is(list) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s: %v", what, list)
		}
	}
}

// member joins groups on a host until leave is called.
func member(t *testing.T, host *lab.Namespace, group4, group6 netip.Addr) (leave func()) {
	t.Helper()
	index := index(t, host)
	var fd int
	err := host.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		mreq4 := &unix.IPMreqn{Multiaddr: group4.As4(), Ifindex: int32(index)}
		if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, mreq4); err != nil {
			return err
		}
		mreq6 := &unix.IPv6Mreq{Multiaddr: group6.As16(), Interface: uint32(index)}
		return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, mreq6)
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() { unix.Close(fd) }
}
