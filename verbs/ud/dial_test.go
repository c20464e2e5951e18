// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/ud"
)

func TestDial(t *testing.T) {
	left, right := wire(t)
	server, stranger := listen(t, right, ud.Options{}), listen(t, right, ud.Options{})
	client, err := ud.Dial(guard(t), left, server.LocalAddr(), ud.Options{RecvDepth: 4})
	check(t, err)
	t.Cleanup(func() { check(t, client.Close()) })
	for range 10 { // more than the number of buffers: those of strays are reposted
		check(t, stranger.Send(guard(t), client.LocalAddr(), []byte("psst")))
		check(t, stranger.Flush(guard(t)))
		eventually(t, "the stray", func() bool {
			before := client.Stats().Strays
			n, err := client.Poll(make([]ud.Message, 1))
			check(t, err)
			return n == 0 && client.Stats().Strays > before
		})
	}
	check(t, client.Send(guard(t), ud.Addr{}, []byte("hello")))
	if m := said(t, server, "hello"); m.From != client.LocalAddr() {
		t.Errorf("got a message from %v", m.From)
	}
	check(t, stranger.Send(guard(t), client.LocalAddr(), []byte("psst")))
	check(t, server.Send(guard(t), client.LocalAddr(), []byte("hello")))
	said(t, client, "hello")
}

// TestOneDevice checks that endpoints of one context can send to each other, and to themselves.
func TestOneDevice(t *testing.T) {
	left, _ := wire(t)
	a, b := listen(t, left, ud.Options{}), listen(t, left, ud.Options{NoLoopback: true})
	check(t, a.Send(guard(t), b.LocalAddr(), []byte("neighbour")))
	said(t, b, "neighbour")
	check(t, a.Send(guard(t), a.LocalAddr(), []byte("myself")))
	said(t, a, "myself")
	check(t, a.Join(group))
	check(t, b.Join(group))
	check(t, b.Send(guard(t), ud.Group(group), []byte("all except me")))
	said(t, a, "all except me")
	check(t, a.Send(guard(t), ud.Group(group), []byte("all")))
	said(t, a, "all")
	said(t, b, "all") // and no message of its own before
}

// TestDropsByName sends messages that must be dropped.
func TestDropsByName(t *testing.T) {
	a, b := pair(t, ud.Options{})
	if d := drops(t, b); len(d) != 0 {
		t.Fatalf("got drops %v before the first message", d)
	}
	wrong := b.LocalAddr()
	wrong.QKey++
	check(t, a.Send(guard(t), wrong, nil))
	wrong = b.LocalAddr()
	wrong.QPN++
	check(t, a.Send(guard(t), wrong, nil))
	check(t, a.Flush(guard(t)))
	eventually(t, "two drops", func() bool {
		d := drops(t, b)
		return len(d) == 2 && d["engine drop_qkey"] == 1 && d["engine drop_unknown_qp"] == 1
	})
}

// plain is a card without counters.
type plain struct{ provider.Provider }

func TestNoCounters(t *testing.T) {
	card, other, err := hca.OpenPair(addressesA, addressesB)
	check(t, err)
	t.Cleanup(func() { check(t, other.Close()) })
	c := contextOn(t, plain{card})
	e := listen(t, c, ud.Options{})
	_, err = e.Drops()
	refused(t, err, verbs.ErrUnsupported)
}

// TestDiscoverBeforeTheServer discovers a server that does not listen yet.
func TestDiscoverBeforeTheServer(t *testing.T) {
	left, right := wire(t)
	client, server, other := listen(t, left, ud.Options{}), listen(t, right, ud.Options{}), listen(t, right, ud.Options{})
	check(t, client.Join(group)) // its own requests, and other messages, are ignored
	found := make(chan ud.Message)
	go func() {
		m, err := client.Discover(guard(t), ud.Group(group), []byte("hello"))
		if err != nil {
			t.Error(err)
		}
		found <- m
	}()
	check(t, other.Send(guard(t), ud.Group(group), []byte("talk")))
	eventually(t, "a request that was not received", func() bool { return client.Stats().Sent > 0 })
	check(t, server.Join(group))
	for {
		m := receive(t, server)
		if string(m.Data) == "hello" {
			check(t, m.Reply(guard(t), []byte("here")))
			m.Release()
			break
		}
		m.Release()
	}
	if m := <-found; m.From != server.LocalAddr() || string(m.Data) != "here" {
		t.Errorf("got %q from %v", m.Data, m.From)
	}
	over, cancel := context.WithCancel(guard(t))
	cancel()
	_, err := client.Discover(over, ud.Group(group), nil)
	refused(t, err, context.Canceled)
}

// TestAddrs checks the addresses that peers can send to.
func TestAddrs(t *testing.T) {
	a, b := pair(t, ud.Options{})
	all, err := b.LocalAddrs()
	check(t, err)
	if len(all) != len(addressesB) || all[0] != b.LocalAddr() {
		t.Fatalf("%v", all)
	}
	for _, to := range all {
		check(t, a.Send(guard(t), to, []byte("by this address")))
		m := receive(t, b)
		if m.To != to {
			t.Errorf("sent to %v, arrived at %v", to, m.To)
		}
		check(t, m.Reply(guard(t), []byte("and back")))
		m.Release()
		if m := said(t, a, "and back"); m.From != to {
			t.Errorf("got a response from %v, want %v", m.From, to)
		}
	}
}

func TestSourceFor(t *testing.T) {
	var entries []verbs.GIDEntry
	for i, text := range addresses("10.0.0.1", "fe80::1", "fd00::1", "192.168.7.1", "2001:db8::1", "10.0.0.1") {
		entries = append(entries, verbs.GIDEntry{GID: verbs.GIDFromAddr(text), Index: i * 2})
	}
	gid := func(text string) verbs.GID { return verbs.GIDFromAddr(addresses(text)[0]) }
	for _, c := range []struct {
		own, dest string
		want      int // index, -1 for none
	}{
		{"", "10.0.0.2", 0}, {"", "192.168.7.9", 6}, {"", "239.1.2.3", 0}, {"", "fe80::9", 2}, {"", "fd00::9", 4},
		{"", "2001:db8::9", 8}, {"", "ff0e::1", 4}, {"192.168.7.1", "10.0.0.2", 6}, {"192.168.7.1", "fd00::9", -1},
		{"10.9.9.9", "10.0.0.2", -1}, {"fd00::1", "fe80::9", 4},
	} {
		own := verbs.GID{}
		if c.own != "" {
			own = gid(c.own)
		}
		index, ok := ud.SourceFor(entries, own, gid(c.dest))
		if !ok {
			index = -1
		}
		if index != c.want {
			t.Errorf("from %q to %s: got index %d, want %d", c.own, c.dest, index, c.want)
		}
	}
	if _, ok := ud.SourceFor(entries[:1], verbs.GID{}, gid("fd00::9")); ok {
		t.Error("got an IPv4 source for an IPv6 destination")
	}
}
