// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/rc"
	"golang.org/x/sys/unix"
)

// openHost opens the card of a host on an in-memory network.
func openHost(t *testing.T, network *memnet.Network, name, address string) *verbs.Context {
	t.Helper()
	host, err := network.AddHost(name, netip.MustParseAddr(address))
	check(t, err)
	card, err := hca.New(host)
	check(t, err)
	ctx, err := verbs.Open(card)
	check(t, err)
	return ctx
}

// connectIn makes a connection between two hosts of a network.
func connectIn(t *testing.T, network *memnet.Network, options rc.Options) (client, server *rc.Conn) {
	t.Helper()
	at := netip.MustParseAddrPort("10.0.0.2:7174")
	listener, err := rc.Listen(openHost(t, network, "server", "10.0.0.2"), at, options)
	check(t, err)
	accepted := make(chan *rc.Conn)
	go func() {
		conn, err := listener.Accept(t.Context())
		check(t, err)
		accepted <- conn
	}()
	client, err = rc.DialAddr(t.Context(), openHost(t, network, "client", "10.0.0.1"), at, options)
	check(t, err)
	server = <-accepted
	check(t, listener.Close())
	return client, server
}

// TestRetransmissionInFakeTime checks that in a bubble of testing/synctest a lost message is retransmitted after its
// timeout, and that neither the timeout nor an hour without messages takes real time.
func TestRetransmissionInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(1)
		client, server := connectIn(t, network, rc.Options{})
		start := time.Now()
		check(t, network.Impair(memnet.Impairment{Loss: 1}))
		sent := make(chan error)
		go func() { sent <- client.Send(t.Context(), []byte("hello")) }()
		synctest.Wait() // the message has been lost
		if lost := network.Counters().Lost; lost == 0 {
			t.Error("no packet was lost")
		}
		check(t, network.Impair(memnet.Impairment{}))
		m, err := server.Recv(t.Context())
		check(t, err)
		if string(m.Data) != "hello" {
			t.Errorf("got the message %q", m.Data)
		}
		m.Release()
		check(t, <-sent)
		if took := time.Since(start); took <= 0 {
			t.Errorf("the message was retransmitted after %v", took)
		}
		time.Sleep(time.Hour)
		check(t, client.Send(t.Context(), []byte("hello again")))
		m, err = server.Recv(t.Context())
		check(t, err)
		m.Release()
		check(t, errors.Join(client.Close(), server.Close(), network.Close()))
	})
}

// TestTimeoutsInFakeTime checks that when packets no longer arrive, a connection ends after its last timeout, and a
// call ends at its deadline. Neither takes real time.
func TestTimeoutsInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(1)
		client, server := connectIn(t, network, rc.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		start := time.Now()
		_, err := server.Recv(ctx)
		refused(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != 24*time.Hour {
			t.Errorf("the call ended after %v", took)
		}
		check(t, network.Impair(memnet.Impairment{Loss: 1}))
		start = time.Now()
		err = client.Send(t.Context(), []byte("hello"))
		if err == nil {
			err = client.Flush(t.Context())
		}
		refused(t, err, unix.ETIMEDOUT, "retry_cnt")
		if took := time.Since(start); took < time.Second {
			t.Errorf("the connection ended after %v, before its timeouts", took)
		}
		check(t, network.Impair(memnet.Impairment{}))
		check(t, errors.Join(client.Close(), server.Close(), network.Close()))
	})
}
