// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The names of modes are those of package nic; the error for another name lists the valid ones.
func TestNamesOfModes(t *testing.T) {
	for _, option := range []Option{
		WithXDPMode(XDPAuto), WithXDPMode(XDPNative), WithXDPMode(XDPGeneric), WithSocketMode(SocketAuto), WithSocketMode(SocketCopy), WithSocketMode(SocketZeroCopy),
		WithSendMode(SendAuto), WithSendMode(SendAFXDP), WithSendMode(SendTrains), WithMembership(MembershipAuto), WithMembership(MembershipNetlink), WithMembership(MembershipSocket),
	} {
		o := newOptions([]Option{option})
		check(t, o.check())
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
