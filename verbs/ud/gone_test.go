// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"errors"
	"net"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/ud"
)

// TestClosedBelow closes the context, or its card, while a net.PacketConn reads: the error is net.ErrClosed, as for any
// connection that the program closes.
func TestClosedBelow(t *testing.T) {
	for name, end := range map[string]func(*verbs.Context, *hca.Card) error{
		"context": func(c *verbs.Context, _ *hca.Card) error { return c.Close() },
		"card":    func(_ *verbs.Context, card *hca.Card) error { return card.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			card, other, err := hca.OpenPair(addressesA, addressesB)
			check(t, err)
			t.Cleanup(func() { check(t, errors.Join(card.Close(), other.Close())) })
			session, err := card.NewSession(hca.SessionConfig{})
			check(t, err)
			c := contextOn(t, session)
			conn, server := listen(t, c, ud.Options{}).PacketConn(), listen(t, c, ud.Options{})
			result := make(chan error)
			go func() {
				_, _, err := conn.ReadFrom(make([]byte, 10))
				result <- err
			}()
			check(t, end(c, card))
			err = <-result
			refused(t, err, net.ErrClosed)
			refused(t, err, verbs.ErrClosed)
			_, err = conn.WriteTo(nil, addr("10.0.0.2", 5, 1))
			refused(t, err, net.ErrClosed)
			_, err = server.Recv(guard(t))
			refused(t, err, net.ErrClosed)
			refused(t, err, verbs.ErrClosed)
		})
	}
}

// failing is a card that has failed: its commands return ErrDeviceFatal, and it is closed.
type failing struct{ provider.Provider }

func (f failing) Err() error { return verbs.ErrDeviceFatal }

// TestFailedBelow checks that the failure of a device is not reported as net.ErrClosed.
func TestFailedBelow(t *testing.T) {
	card, other, err := hca.OpenPair(addressesA, addressesB)
	check(t, err)
	t.Cleanup(func() { check(t, other.Close()) })
	c := contextOn(t, failing{card})
	conn := listen(t, c, ud.Options{}).PacketConn()
	check(t, card.Close())
	_, _, err = conn.ReadFrom(make([]byte, 10))
	refused(t, err, verbs.ErrDeviceFatal)
	if errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, which is net.ErrClosed", err)
	}
}
