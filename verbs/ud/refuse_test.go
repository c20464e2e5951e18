// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// TestNoGroup uses an address that is not multicast as a group, also when its IP has a handle.
func TestNoGroup(t *testing.T) {
	a, b := pair(t, ud.Options{})
	ctx := guard(t)
	check(t, a.Resolve(ctx, b.LocalAddr()))
	for _, ip := range []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.77"), netip.MustParseAddr("fd00::2"), {}} {
		none := ud.Group(ip)
		refused(t, a.Send(ctx, none, nil), verbs.ErrInvalid)
		refused(t, a.Resolve(ctx, none), verbs.ErrInvalid)
		refused(t, a.Join(ip), verbs.ErrInvalid)
		_, err := a.Discover(ctx, none, nil)
		refused(t, err, verbs.ErrInvalid)
		_, err = a.Request(ctx, none, nil, nil)
		refused(t, err, verbs.ErrInvalid)
		_, err = a.PacketConn().WriteTo(nil, none)
		refused(t, err, verbs.ErrInvalid)
	}
	left, right := wire(t)
	server := listen(t, right, ud.Options{})
	_, err := ud.Dial(ctx, left, ud.Group(server.LocalAddr().IP()), ud.Options{})
	refused(t, err, verbs.ErrInvalid)
	client, err := ud.Dial(ctx, left, server.LocalAddr(), ud.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, client.Close()) })
	refused(t, client.Send(ctx, ud.Group(netip.Addr{}), nil), verbs.ErrInvalid) // not to the peer
}

// TestDiscoverIsForGroups checks that Discover rejects queue pairs, and Request groups.
func TestDiscoverIsForGroups(t *testing.T) {
	a, b := pair(t, ud.Options{})
	_, err := a.Discover(guard(t), b.LocalAddr(), nil)
	refused(t, err, verbs.ErrInvalid)
	if !strings.Contains(err.Error(), "Request") {
		t.Errorf("%v: got no remedy", err)
	}
	_, err = a.Request(guard(t), ud.Group(group), nil, nil)
	refused(t, err, verbs.ErrInvalid)
	if sent := a.Stats().Sent; sent != 0 {
		t.Errorf("got %d messages sent", sent)
	}
}

// TestRequest checks that a request is repeated until the server replies, and that messages of other senders and older
// responses are ignored.
func TestRequest(t *testing.T) {
	left, right := wire(t)
	client, server, other := listen(t, left, ud.Options{}), listen(t, right, ud.Options{}), listen(t, right, ud.Options{})
	ctx := guard(t)
	number := func(i uint32) []byte { return binary.BigEndian.AppendUint32(nil, i) }
	go func() {
		for asked := 0; ctx.Err() == nil; asked++ {
			m, err := server.Recv(ctx)
			if err != nil {
				return // closed
			}
			if asked > 0 { // the first is lost
				_ = other.Send(ctx, m.From, m.Data)
				_ = m.Reply(ctx, number(binary.BigEndian.Uint32(m.Data)-1))
				_ = m.Reply(ctx, m.Data)
			}
			m.Release()
		}
	}()
	for i := range uint32(3) {
		answer, err := client.Request(ctx, server.LocalAddr(), number(i+1), func(m *ud.Message) bool { return string(m.Data) == string(number(i+1)) })
		check(t, err)
		if answer.From != server.LocalAddr() || string(answer.Data) != string(number(i+1)) {
			t.Errorf("got %x from %v", answer.Data, answer.From)
		}
		answer.Release()
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := client.Request(over, server.LocalAddr(), nil, nil)
	refused(t, err, context.Canceled)
	if lent := client.Stats().Lent; lent != 0 {
		t.Errorf("got %d lent buffers", lent)
	}
}

// TestErrorsSayItOnce checks that wrapping does not repeat words of an error.
func TestErrorsSayItOnce(t *testing.T) {
	left, _ := wire(t)
	e := listen(t, left, ud.Options{MaxMessage: 100})
	conn, nobody := e.PacketConn(), addr("10.0.0.77", 5, 1)
	ctx := guard(t)
	_, written := conn.WriteTo(nil, nobody)
	_, long := conn.WriteTo(make([]byte, 101), nobody)
	_, dialed := ud.Dial(ctx, left, nobody, ud.Options{})
	_, options := ud.New(left, ud.Options{MaxMessage: 5000})
	for _, row := range []struct {
		err  error
		is   error
		once []string
	}{
		{written, verbs.ErrUnreachable, []string{nobody.String(), "unreachable"}},
		{long, unix.EMSGSIZE, []string{nobody.String(), "message too long"}},
		{dialed, verbs.ErrUnreachable, []string{nobody.String(), "unreachable"}},
		{e.Send(ctx, nobody, nil), verbs.ErrUnreachable, []string{nobody.String(), "send to"}},
		{e.Send(ctx, nobody, make([]byte, 101)), ud.ErrTooLong, []string{"message too long", "101"}},
		{options, ud.ErrTooLong, []string{"message too long"}},
		{e.Join(netip.MustParseAddr("10.0.0.1")), unix.EINVAL, []string{"invalid argument", "multicast address"}},
		{ud.ErrClosed, net.ErrClosed, []string{"closed"}},
	} {
		refused(t, row.err, row.is)
		for _, words := range row.once {
			if strings.Count(row.err.Error(), words) != 1 {
				t.Errorf("%q: got %q %d times, want once", row.err, words, strings.Count(row.err.Error(), words))
			}
		}
		if strings.Contains(row.err.Error(), "create AH") {
			t.Errorf("%q: repeats the destination", row.err)
		}
	}
}

// TestConnTakesPointers checks pointers to addresses, since a decoded address is often a pointer.
func TestConnTakesPointers(t *testing.T) {
	a, b := conns(t)
	to := a.RemoteAddr().(ud.Addr)
	_, err := a.WriteTo([]byte("hello"), &to)
	check(t, err)
	buffer := make([]byte, 10)
	n, err := b.Read(buffer)
	if check(t, err); string(buffer[:n]) != "hello" {
		t.Errorf("%q", buffer[:n])
	}
	for _, none := range []*ud.Addr{nil, {}} {
		_, err = a.WriteTo(nil, none)
		refused(t, err, verbs.ErrInvalid)
		_ = err.Error() // has a text
	}
}
