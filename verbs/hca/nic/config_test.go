// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"testing"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/mcast/membership"
	"golang.org/x/sys/unix"
)

// Mode names map to the numbers of the packages below; the error for another name lists the valid ones.
func TestNamesOfModes(t *testing.T) {
	for _, row := range []struct {
		c    Config
		want modes
	}{
		{Config{}, modes{bpf.Auto, xsk.Auto, membership.Auto}},
		{Config{XDP: "auto", Socket: "auto", Membership: "auto"}, modes{bpf.Auto, xsk.Auto, membership.Auto}},
		{Config{XDP: "native", Socket: "copy", Membership: "netlink"}, modes{bpf.Native, xsk.Copy, membership.Netlink}},
		{Config{XDP: "generic", Socket: "zero-copy", Membership: "socket"}, modes{bpf.Generic, xsk.ZeroCopy, membership.Socket}},
	} {
		if got, err := row.c.modes(); got != row.want || err != nil {
			t.Errorf("%+v, %v; want %+v", got, err, row.want)
		}
	}
	for names, c := range map[string]Config{
		"auto, native, generic": {XDP: "Native"}, "auto, copy, zero-copy": {Socket: "zerocopy"}, "auto, netlink, socket": {Membership: "igmp"},
		"auto, af_xdp, trains": {Send: "train"},
	} {
		_, err := Open("eth0", c)
		refused(t, err, unix.EINVAL, names)
	}
}
