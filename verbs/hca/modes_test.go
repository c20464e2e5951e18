package hca

import (
	"testing"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/mcast/membership"
	"golang.org/x/sys/unix"
)

// The names that a user gives mean what the packages below call by number; others are refused
// with those that there are.
func TestNamesOfModes(t *testing.T) {
	for _, row := range []struct {
		options []Option
		want    modes
	}{
		{nil, modes{bpf.Auto, xsk.Auto, membership.Auto}},
		{[]Option{WithXDPMode(XDPAuto), WithSocketMode(SocketAuto), WithMembership(MembershipAuto)}, modes{bpf.Auto, xsk.Auto, membership.Auto}},
		{[]Option{WithXDPMode(XDPNative), WithSocketMode(SocketCopy), WithMembership(MembershipNetlink)}, modes{bpf.Native, xsk.Copy, membership.Netlink}},
		{[]Option{WithXDPMode("generic"), WithSocketMode("zero-copy"), WithMembership("socket")}, modes{bpf.Generic, xsk.ZeroCopy, membership.Socket}},
	} {
		o := newOptions(row.options)
		if got, err := o.check(); got != row.want || err != nil {
			t.Errorf("%+v, %v; want %+v", got, err, row.want)
		}
	}
	for name, option := range map[string]Option{
		"auto, native, generic": WithXDPMode("Native"), "auto, copy, zero-copy": WithSocketMode("zerocopy"), "auto, netlink, socket": WithMembership("igmp"),
	} {
		_, err := Open("eth0", option)
		refused(t, err, unix.EINVAL, name)
		_, _, err = OpenPair(nil, nil, option)
		refused(t, err, unix.EINVAL, name)
	}
}
