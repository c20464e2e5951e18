// SPDX-License-Identifier: Apache-2.0

package netdev_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/netdev"
	"github.com/roced/roced/verbs/ud"
)

// comes waits for a packet, and reports another packet as a failure.
func comes(t testing.TB, h *host, want []byte) {
	t.Helper()
	select {
	case p := <-h.in:
		if !bytes.Equal(p, want) {
			t.Fatalf("% x\ncame, want\n% x", p, want)
		}
	case <-guard(t).Done():
		t.Fatal("no packet came")
	}
}

// TestPacketsTravel: both IP versions, one host, all hosts, another network by a router, of any length.
func TestPacketsTravel(t *testing.T) {
	t.Parallel()
	left, right := cards(t)
	a, b := newHost("192.168.7.2/24", "fd07::2/64"), newHost("192.168.7.1/24", "fd07::1/64")
	da, db := start(t, left, a, 7, netdev.Options{MTU: 4000}), start(t, right, b, 7, netdev.Options{MTU: 4000})
	if da.MTU() != 4000 || da.Group() != netip.MustParseAddr("239.192.0.7") {
		t.Error(da.MTU(), da.Group())
	}
	for _, to := range []string{"192.168.7.1", "224.0.0.251", "255.255.255.255", "8.8.8.8"} {
		for _, length := range []int{20, 21, 1020, 1021, 2040, 2041, 4000} {
			a.out <- ipPacket("192.168.7.2", to, max(length, 20))
			comes(t, b, ipPacket("192.168.7.2", to, max(length, 20)))
		}
	}
	for _, to := range []string{"fd07::1", "ff02::fb", "2001:db8::1"} {
		for _, length := range []int{40, 1020, 1021, 1280, 4000} {
			a.out <- ipPacket("fd07::2", to, length)
			comes(t, b, ipPacket("fd07::2", to, length))
		}
	}
	b.out <- ipPacket("192.168.7.1", "192.168.7.2", 100)
	comes(t, a, ipPacket("192.168.7.1", "192.168.7.2", 100))
	var sa, sb netdev.Stats
	eventually(t, "the counts of the last packet", func() bool { // they come after it
		sa, sb = da.Stats(), db.Stats()
		return sb.Received >= 43 && sb.ReceivedBytes >= sa.SentBytes
	})
	if sa.Sent != 43 || sb.Received != 43 || sa.SentBytes != sb.ReceivedBytes || len(sa.Drops)+len(sb.Drops) > 0 {
		t.Errorf("%+v\n%+v", sa, sb)
	}
	if sa.Neighbours != 2 { // one a version: the router is one of them
		t.Errorf("%d neighbours", sa.Neighbours)
	}
}

// TestLeastMTU: IPv6 needs 1280 bytes, and a datagram of this wire has fewer.
func TestLeastMTU(t *testing.T) {
	t.Parallel()
	left, _ := cards(t)
	attr, err := left.QueryPort(1)
	check(t, err)
	want := max(1280, attr.ActiveMTU.Bytes()-4)
	h := newHost()
	if d := start(t, left, h, 0, netdev.Options{}); d.MTU() != want || <-h.mtu != want {
		t.Errorf("MTU %d, want %d", d.MTU(), want)
	}
}

// TestStartedAgain: a host that is killed, and comes back with another queue pair, is found at once.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	left, right := cards(t)
	a, b := newHost("192.168.7.1/24"), newHost("192.168.7.2/24")
	start(t, left, a, 0, netdev.Options{})
	first, err := netdev.Alloc(right, 1, "", netdev.Options{Interface: b})
	check(t, err)
	check(t, first.Init())
	go first.Run(guard(t))
	p := ipPacket("192.168.7.1", "192.168.7.2", 64)
	a.out <- p
	comes(t, b, p)
	check(t, first.Close())

	again := newHost("192.168.7.2/24")
	start(t, right, again, 0, netdev.Options{})
	begin := time.Now()
	eventually(t, "a packet at the new queue pair", func() bool {
		a.out <- p
		select {
		case <-again.in:
			return true
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
	t.Log("after", time.Since(begin))
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	left, _ := cards(t)
	a := newHost("192.168.7.1/24")
	d := start(t, left, a, 0, netdev.Options{MaxNeighbours: 2})
	for _, to := range []string{"192.168.7.9", "192.168.7.10", "192.168.7.11"} { // the first is forgotten for the third
		for range 20 { // of which 16 wait
			a.out <- ipPacket("192.168.7.1", to, 64)
		}
	}
	a.out <- ipPacket("fd00::1", "fd00::2", 64) // there is no source address for the query
	eventually(t, "the end of waiting", func() bool {
		s := d.Stats()
		return s.Drops["no_neighbour"] == 32 && s.Drops["waiting"] == 3*4+16 && s.Neighbours == 0 &&
			s.Drops["no_hop"] == 1
	})
}

// TestNetworksAreApart: devices hear those of their id.
func TestNetworksAreApart(t *testing.T) {
	t.Parallel()
	left, right := cards(t)
	a, b, c := newHost("192.168.7.1/24"), newHost("192.168.7.2/24"), newHost("192.168.7.2/24")
	group := netip.MustParseAddr("239.9.9.9") // the same for both: the Q_Key keeps them apart
	start(t, left, a, 1, netdev.Options{Group: group})
	start(t, right, b, 1, netdev.Options{Group: group})
	start(t, right, c, 2, netdev.Options{Group: group})
	for range 10 {
		for _, to := range []string{"192.168.7.2", "224.0.0.1"} {
			p := ipPacket("192.168.7.1", to, 64)
			a.out <- p
			comes(t, b, p)
		}
	}
	if len(c.in) > 0 {
		t.Error("a packet came to another network")
	}
}

// TestGroupsAndSend: a group besides the network's own, a packet sent to it past the neighbours, and to a queue pair.
func TestGroupsAndSend(t *testing.T) {
	t.Parallel()
	left, right := cards(t)
	a, b := newHost("192.168.7.1/24"), newHost("192.168.7.2/24")
	da, db := start(t, left, a, 0, netdev.Options{}), start(t, right, b, 0, netdev.Options{})
	gid := verbs.GIDFromAddr(netip.MustParseAddr("239.1.2.3"))
	to := ud.Addr{GID: gid, QPN: verbs.MulticastQPN, QKey: da.QKey()}
	p := ipPacket("192.168.7.1", "239.1.2.3", 2000)
	check(t, db.AttachMcast(gid, 0, true, db.QKey()))
	check(t, da.Send(guard(t), p, to))
	comes(t, b, p)
	check(t, db.DetachMcast(gid, 0))
	check(t, da.Send(guard(t), p, to))
	last := ipPacket("192.168.7.1", "224.0.0.1", 64)
	a.out <- last
	comes(t, b, last)

	refused(t, db.DetachMcast(gid, 0), verbs.ErrNoGID)
	refused(t, db.AttachMcast(gid, 1, false, 0), verbs.ErrInvalid, "MLID")
	refused(t, db.AttachMcast(gid, 0, true, 5), verbs.ErrInvalid, "Q_Key")
	refused(t, da.Send(guard(t), []byte("no packet"), to), verbs.ErrInvalid, "not an IP packet")
	refused(t, da.Send(guard(t), ipPacket("192.168.7.1", "192.168.7.2", 65535), to), ud.ErrTooLong)
}

// TestInitOnce: permitted calls by state.
func TestInitOnce(t *testing.T) {
	t.Parallel()
	left, _ := cards(t)
	for _, o := range []netdev.Options{{MTU: 67}, {MTU: 65473}, {MaxNeighbours: -1}, {Group: netip.MustParseAddr("10.0.0.1")}} {
		o.Interface = newHost()
		_, err := netdev.Alloc(left, 1, "x", o)
		refused(t, err, verbs.ErrInvalid)
	}
	_, err := netdev.Alloc(left, 2, "x", netdev.Options{Interface: newHost()})
	refused(t, err, verbs.ErrInvalid, "port 2")
	_, err = netdev.Alloc(nil, 1, "x", netdev.Options{Interface: newHost()})
	refused(t, err, verbs.ErrInvalid)
	d, err := netdev.Alloc(left, 1, "", netdev.Options{Interface: newHost("10.1.1.1/8")})
	check(t, err)
	d.ClientPriv = t
	refused(t, d.SetID(-1), verbs.ErrInvalid)
	refused(t, d.SetID(65536), verbs.ErrInvalid)
	refused(t, d.Run(guard(t)), verbs.ErrState)
	refused(t, d.AttachMcast(verbs.GID{}, 0, false, 0), verbs.ErrState)
	refused(t, d.DetachMcast(verbs.GID{}, 0), verbs.ErrState)
	refused(t, d.Send(guard(t), ipPacket("10.1.1.1", "10.1.1.2", 64), ud.Addr{}), verbs.ErrState)
	check(t, d.SetID(9))
	check(t, d.Init())
	refused(t, d.Init(), verbs.ErrBusy)
	refused(t, d.SetID(1), verbs.ErrBusy)
	if d.HCA != left || d.PortNum != 1 || d.ClientPriv != t || d.Name() != "memory" {
		t.Errorf("%+v", d)
	}
	check(t, d.Close())
	check(t, d.Close())
}
