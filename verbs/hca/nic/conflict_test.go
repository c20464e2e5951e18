// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"net"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/vishvananda/netlink"
)

// Addresses without a subnet share none.
func TestSharedSubnets(t *testing.T) {
	at := func(index int, cidr string) netlink.Addr {
		a, err := netlink.ParseAddr(cidr)
		check(t, err)
		a.LinkIndex = index
		return *a
	}
	for _, row := range []struct {
		list []netlink.Addr
		want []int
	}{
		{[]netlink.Addr{at(1, "10.0.0.1/24"), at(2, "10.0.1.1/24")}, nil},
		{[]netlink.Addr{at(1, "10.0.0.1/24"), at(2, "10.0.0.2/24"), at(2, "10.0.0.3/24"), at(3, "10.0.0.4/16")}, []int{2, 3}},
		{[]netlink.Addr{at(2, "10.0.0.2/24"), at(1, "10.0.0.1/24"), at(1, "10.0.0.9/24")}, []int{2}},
		{[]netlink.Addr{at(1, "10.0.0.1/24"), at(2, "10.0.0.2/32")}, nil},
		{[]netlink.Addr{at(1, "10.0.0.1/32"), at(2, "10.0.0.2/24")}, nil},
		{[]netlink.Addr{at(1, "127.0.0.2/8"), at(2, "127.0.0.1/8")}, nil},
		{[]netlink.Addr{at(1, "239.1.2.3/24"), at(2, "239.1.2.3/24")}, nil},
	} {
		var got []int
		for _, s := range sharedSubnets(row.list, 1) {
			got = append(got, s.index)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%v: %v, want %v", row.list, got, row.want)
		}
	}
}

// RDMA devices on the interface are read from sysfs, if that belongs to our namespace.
func TestRDMADevices(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	sys := fstest.MapFS{
		"class/net/eth0/ifindex": file("7"), "class/net/eth0/address": file("02:00:00:00:00:01"),
		"class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0":   file("eth0"),
		"class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0": file("eth1"),
		"class/infiniband/mlx5_0/ports/2/gid_attrs/ndevs/0": file("eth0"),
		"class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0": file("eth2"),
		"class/infiniband/ib0/ports/1/state":                file("4: ACTIVE"),
	}
	if got := rdmaDevices(sys, "eth0"); !slices.Equal(got, []string{"mlx5_0", "rxe0"}) {
		t.Errorf("%v", got)
	}
	if got := rdmaDevices(fstest.MapFS{}, "eth0"); got != nil {
		t.Errorf("got %v from an empty sysfs", got)
	}
	link := attrs("eth0", 1500)
	link.Index, link.HardwareAddr = 7, net.HardwareAddr{2, 0, 0, 0, 0, 1}
	if !showsLink(sys, &link) {
		t.Error("this sysfs is ours")
	}
	link.Index = 8
	if showsLink(sys, &link) {
		t.Error("another interface of that name")
	}
	link.Index, link.HardwareAddr[5] = 7, 2
	if showsLink(sys, &link) {
		t.Error("another namespace's interface of that name and number")
	}
}
