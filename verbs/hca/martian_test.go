// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"encoding/binary"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/wire/wiretest"
	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

// XDP bypasses the kernel's own checks, so this test compares both: each packet is sent twice, to the card and, with
// another port, to a socket of the same host. Where they differ the row has the reason. (rp_filter is off, the default
// of a namespace.)
func TestSourcesAsTheKernelHasThem(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	r := newRawSender(t, l.A, l.B, l.b.qp.Number())
	broadcastMAC := wire.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for _, row := range []struct {
		name, source, dest string
		mac                wire.MAC // zero: the host's
		want               string   // expected counter
		kernel             string   // whether the socket receives it: takes, drops, or depends (on the kernel version)
	}{
		{"a neighbour", "10.77.0.9", "10.77.0.2", wire.MAC{}, "delivered", "takes"},
		{"a neighbour, IPv6", "fd77::9", "fd77::2", wire.MAC{}, "delivered", "takes"},
		{"loopback", "127.0.0.1", "10.77.0.2", wire.MAC{}, "drop_martian_source", "drops"},
		{"0.0.0.0", "0.0.0.0", "10.77.0.2", wire.MAC{}, "drop_martian_source", "drops"},
		{"0.0.0.1", "0.0.0.1", "10.77.0.2", wire.MAC{}, "delivered", "takes"},
		{"limited broadcast", "255.255.255.255", "10.77.0.2", wire.MAC{}, "drop_martian_source", "drops"},
		{"class E", "240.0.0.1", "10.77.0.2", wire.MAC{}, "delivered", "takes"},
		{"a group", "239.1.2.3", "10.77.0.2", wire.MAC{}, "drop_multicast_source", "drops"},
		{"itself", "10.77.0.2", "10.77.0.2", wire.MAC{}, "drop_own_source", "drops"},
		// With rp_filter, which most distributions enable, the kernel also drops it.
		{"the subnet's broadcast", "10.77.0.255", "10.77.0.2", wire.MAC{}, "drop_martian_source", "takes"},
		{"::1", "::1", "fd77::2", wire.MAC{}, "drop_martian_source", "drops"},
		// The engine would interpret it as the IPv4 host.
		{"an IPv4 address in IPv6", "::ffff:10.77.0.1", "fd77::2", wire.MAC{}, "drop_martian_source", "depends"},
		{"a group, IPv6", "ff0e::1", "fd77::2", wire.MAC{}, "drop_multicast_source", "drops"},
		// The kernel accepts it, but no response is possible.
		{"::", "::", "fd77::2", wire.MAC{}, "drop_martian_source", "takes"},
		{"another host's MAC", "10.77.0.9", "10.77.0.2", wire.MAC{2, 9, 9, 9, 9, 9}, "pass_other_host", "drops"},
		{"another host's MAC, IPv6", "fd77::9", "fd77::2", wire.MAC{2, 9, 9, 9, 9, 9}, "pass_other_host", "drops"},
		{"the broadcast MAC", "10.77.0.9", "10.77.0.2", broadcastMAC, "delivered", "takes"},
		{"a group's MAC, IPv6", "fd77::9", "fd77::2", wire.MAC{0x33, 0x33, 0, 0, 0, 1}, "delivered", "takes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := strange(r, row.source, row.dest)
			if row.mac != (wire.MAC{}) {
				copy(f, row.mac[:])
			}
			if row.want == "delivered" {
				l.b.receive(0)
			}
			before := counts(t, l.b.device)
			r.send(f)
			eventually(t, row.want, func() bool { return moved(before, counts(t, l.b.device))[row.want] == 1 })
			if row.want == "delivered" {
				l.b.wait(1)
			}
			if got := reachesSocket(t, l.B, r, f, row.dest); row.kernel != "depends" && got != (row.kernel == "takes") {
				t.Errorf("the kernel accepts it: %v, want %s", got, row.kernel)
			}
		})
	}
}

// strange returns a packet between addresses that may differ in kind.
func strange(r *rawSender, source, dest string) []byte {
	from, to := address(source), address(dest)
	if to.Is4() {
		return frame(r.path(source, dest), r.datagram(), make([]byte, 16))
	}
	f := frame(r.path("fd77::1", dest), r.datagram(), make([]byte, 16))
	ip := from.As16()
	copy(f[wiretest.IP+8:], ip[:])
	return wiretest.Reseal6(f)
}

// reachesSocket sends a frame to a socket of the host itself, and then a good one.
func reachesSocket(t *testing.T, host *lab.Namespace, r *rawSender, f []byte, dest string) bool {
	t.Helper()
	const port = 4792
	to := address(dest)
	fd := newUDP(t, host, to)
	defer unix.Close(fd)
	check(t, unix.Bind(fd, sockaddr(to, port)))
	good, udp := "10.77.0.1", wiretest.UDP
	if to.Is6() {
		const noCheck6RX = 102 // UDP_NO_CHECK6_RX
		check(t, unix.SetsockoptInt(fd, unix.IPPROTO_UDP, noCheck6RX, 1))
		good, udp = "fd77::1", wiretest.IP+40
	}
	last := frame(r.path(good, dest), r.datagram(), make([]byte, 32))
	for _, one := range [][]byte{f, last} {
		binary.BigEndian.PutUint16(one[udp+2:], port)
		r.send(one)
	}
	buffer, count := make([]byte, 256), 0
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		check(t, err)
		if n == len(last)-udp-8 {
			return count > 0
		}
		count++
	}
}

// A new MAC, set by a bond or an administrator, becomes the card's immediately, and the old one is no longer accepted.
func TestMACChanges(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	r := newRawSender(t, l.A, l.B, l.b.qp.Number())
	old := r.to
	now := setMAC(t, l.B, 0x77)
	l.b.receive(0)
	copy(r.to[:], now)
	eventually(t, "a frame to the new MAC", func() bool { // one may be lost while the MAC changes
		r.send(r.good(nil))
		return l.b.device.engine.Counters().Delivered > 0
	})
	l.b.wait(1)
	r.to = old
	before := counts(t, l.b.device)
	r.send(r.good(nil))
	eventually(t, "the frame to the old MAC", func() bool { return moved(before, counts(t, l.b.device))["pass_other_host"] == 1 })
}

// A new subnet adds its broadcast address, and its removal removes it.
func TestBroadcastsFollow(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	r := newRawSender(t, l.A, l.B, l.b.qp.Number())
	goes := func(want string) {
		t.Helper()
		before := counts(t, l.b.device)
		eventually(t, want, func() bool { // XDP and the engine are updated one after the other
			r.send(frame(r.path("10.78.0.255", "10.77.0.2"), r.datagram(), nil))
			return moved(before, counts(t, l.b.device))[want] > 0
		})
	}
	goes("no_receive")
	check(t, l.B.AddAddress("eth0", "10.78.0.2/24"))
	goes("drop_martian_source")
	delAddress(t, l.B, "10.78.0.2/24")
	goes("no_receive")
}
