// SPDX-License-Identifier: Apache-2.0

package netdev_test

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/netdev"
	"github.com/roced/roced/verbs/ud"
)

// TestHostileDatagrams: invalid packets of a peer with the right Q_Key are dropped for their reasons, and none reaches
// the host.
func TestHostileDatagrams(t *testing.T) {
	t.Parallel()
	left, right := cards(t)
	h := newHost("192.168.7.1/24", "fd07::1/64")
	d := start(t, left, h, 3, netdev.Options{})
	e, err := ud.New(right, ud.Options{QKey: d.QKey()})
	check(t, err)
	t.Cleanup(func() { check(t, e.Close()) })
	group := ud.Addr{GID: verbs.GIDFromAddr(d.Group()), QPN: verbs.MulticastQPN, QKey: d.QKey()}
	place := placeOf(t, e, group)

	frame := func(protocol uint16, rest string, p []byte) []byte {
		return append([]byte{byte(protocol >> 8), byte(protocol), rest[0], rest[1]}, p...)
	}
	const v4, arp, v6 = 0x800, 0x806, 0x86dd
	good := ipPacket("192.168.7.2", "192.168.7.1", 64)
	ask := []byte{0, 32, 8, 0, 0, 4, 0, 1, 192, 168, 7, 2, 192, 168, 7, 1}
	with := func(p []byte, at int, b ...byte) []byte {
		p = append([]byte(nil), p...)
		copy(p[at:], b)
		return p
	}
	for _, row := range []struct {
		name, reason string
		inGroup      bool
		data         [][]byte
	}{
		{"nothing", "short", false, [][]byte{{}}},
		{"a header", "short", false, [][]byte{frame(v4, "\x00\x00", nil)}},
		{"another protocol", "protocol", false, [][]byte{frame(0x88cc, "\x00\x00", good)}},
		{"no IP", "not_ip", false, [][]byte{frame(v4, "\x00\x00", make([]byte, 64))}},
		{"another version", "not_ip", false, [][]byte{frame(v6, "\x00\x00", good)}},
		{"a header too short", "length", false, [][]byte{frame(v4, "\x00\x00", good[:19])}},
		{"cut", "length", false, [][]byte{frame(v4, "\x00\x00", good[:63])}},
		{"more than declared", "length", false, [][]byte{frame(v4, "\x00\x00", append(good, 1))}},
		{"header beyond the end", "length", false, [][]byte{frame(v4, "\x00\x00", with(good[:20], 0, 0x4f, 0, 0, 20))}},
		{"header of 4 bytes", "length", false, [][]byte{frame(v4, "\x00\x00", with(good, 0, 0x41))}},
		{"IPv6 cut", "length", false, [][]byte{frame(v6, "\x00\x00", ipPacket("fd07::2", "fd07::1", 64)[:63])}},
		{"from ourselves", "source", false, [][]byte{frame(v4, "\x00\x00", ipPacket("192.168.7.1", "192.168.7.1", 64))}},
		{"from ourselves, IPv6", "source", true, [][]byte{frame(v6, "\x00\x00", ipPacket("fd07::1", "ff02::1", 64))}},
		{"from loopback", "source", false, [][]byte{frame(v4, "\x00\x00", ipPacket("127.0.0.1", "192.168.7.1", 64))}},
		{"from a group", "source", false, [][]byte{frame(v4, "\x00\x00", ipPacket("224.0.0.1", "192.168.7.1", 64))}},
		{"from no host", "source", false, [][]byte{frame(v4, "\x00\x00", ipPacket("0.0.0.0", "192.168.7.1", 64))}},
		{"from IPv4 in IPv6", "source", false, [][]byte{frame(v6, "\x00\x00", ipPacket("::ffff:1.2.3.4", "fd07::1", 64))}},
		{"to loopback", "destination", false, [][]byte{frame(v6, "\x00\x00", ipPacket("fd07::2", "::1", 64))}},
		{"for one, to all", "unicast_in_group", true, [][]byte{frame(v4, "\x00\x00", good)}},
		{"a second piece alone", "piece", false, [][]byte{frame(v4, "\x01\x01", good)}},
		{"a piece left out", "piece", false, [][]byte{frame(v4, "\x80\x02", good), frame(v4, "\x02\x02", good)}},
		{"pieces of two", "piece", false, [][]byte{frame(v4, "\x80\x03", good), frame(v4, "\x01\x04", good)}},
		{"a piece twice", "piece", false, [][]byte{frame(v4, "\x80\x05", good), frame(v4, "\x81\x05", good), frame(v4, "\x81\x05", good)}},
		{"pieces of two protocols", "piece", false, [][]byte{frame(v4, "\x80\x06", good), frame(v6, "\x01\x06", good)}},
		{"pieces that are no packet", "length", false, [][]byte{frame(v4, "\x80\x07", good), frame(v4, "\x01\x07", good)}},
		{"a question, cut", "resolution", true, [][]byte{frame(arp, "\x00\x00", ask[:15])}},
		{"a question of Ethernet", "resolution", true, [][]byte{frame(arp, "\x00\x00", with(ask, 1, 1))}},
		{"a question with a hardware address", "resolution", true, [][]byte{frame(arp, "\x00\x00", with(ask, 4, 20))}},
		{"a question of another length", "resolution", true, [][]byte{frame(arp, "\x00\x00", with(ask, 5, 16))}},
		{"another operation", "resolution", true, [][]byte{frame(arp, "\x00\x00", with(ask, 7, 3))}},
		{"query by a group", "resolution", true, [][]byte{frame(arp, "\x00\x00", with(ask, 8, 224))}},
		{"an announcement of our address", "claim", true, [][]byte{frame(arp, "\x00\x00", with(ask, 11, 1))}},
	} {
		before := d.Stats().Drops[row.reason]
		to := place
		if row.inGroup {
			to = group
		}
		for _, data := range row.data {
			check(t, e.Send(guard(t), to, data))
		}
		eventually(t, row.name, func() bool { return d.Stats().Drops[row.reason] == before+1 })
	}
	tooMany(t, d, e, place, good)
	if s := d.Stats(); s.Received != 0 || len(h.in) > 0 || s.Neighbours > 0 {
		t.Errorf("%+v", s)
	}
	check(t, e.Send(guard(t), place, frame(v4, "\x00\x00", good)))
	comes(t, h, good)
}

// tooMany sends a packet of more pieces than there may be.
func tooMany(t *testing.T, d *netdev.Device, e *ud.Endpoint, to ud.Addr, p []byte) {
	t.Helper()
	for i := range byte(16) {
		check(t, e.Send(guard(t), to, append([]byte{8, 0, 0x80 | i, 9}, p...)))
	}
	eventually(t, "too many pieces", func() bool { return d.Stats().Drops["too_long"] == 1 })
}

// placeOf queries the location of 192.168.7.1.
func placeOf(t *testing.T, e *ud.Endpoint, group ud.Addr) ud.Addr {
	t.Helper()
	ask := []byte{8, 6, 0, 0, 0, 32, 8, 0, 0, 4, 0, 1, 192, 168, 7, 2, 192, 168, 7, 1}
	answer, err := e.Discover(guard(t), group, ask)
	check(t, err)
	defer answer.Release()
	if from, _ := netip.AddrFromSlice(answer.Data[12:16]); from != netip.MustParseAddr("192.168.7.1") {
		t.Errorf("%v answers", from)
	}
	return answer.From
}

// TestFloodOfQuestions: asking in the name of many fills no table, and packets still travel.
func TestFloodOfQuestions(t *testing.T) {
	t.Parallel()
	left, right := cards(t)
	h, other := newHost("192.168.7.1/24"), newHost("192.168.7.3/24")
	d := start(t, left, h, 3, netdev.Options{})
	start(t, right, other, 3, netdev.Options{})
	e, err := ud.New(right, ud.Options{QKey: d.QKey()})
	check(t, err)
	t.Cleanup(func() { check(t, e.Close()) })
	group := ud.Addr{GID: verbs.GIDFromAddr(d.Group()), QPN: verbs.MulticastQPN, QKey: d.QKey()}
	p := ipPacket("192.168.7.1", "192.168.7.3", 64)
	for i := range 5000 {
		ask := []byte{8, 6, 0, 0, 0, 32, 8, 0, 0, 4, 0, 1, 192, 168, byte(i >> 8), byte(i), 192, 168, 7, 1}
		check(t, e.Send(guard(t), group, ask))
		check(t, e.Send(guard(t), group, append([]byte{8, 0, 0x80, 1}, p...)))
		if i%100 == 0 {
			h.out <- p
		}
	}
	eventually(t, "packets under the flood", func() bool {
		h.out <- p
		return len(other.in) > 20
	})
	if n := d.Stats().Neighbours; n > 1 {
		t.Errorf("%d neighbours", n)
	}
}
