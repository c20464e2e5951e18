// SPDX-License-Identifier: Apache-2.0

package pingpong

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"golang.org/x/sys/unix"
)

// pingpongPair returns two sides on an in-memory network that send to each other.
func pingpongPair(t *testing.T, size, count int) (client, server *Exchange) {
	t.Helper()
	left, right := cardtest.Wire(t)
	side := func(e, peer *card.Endpoint) *Exchange {
		payload := Payload(size)
		return &Exchange{Endpoint: e, To: peer.LocalAddr(), Data: payload, Peer: peer.QPN(), Size: size, Count: count, Timeout: time.Hour, Payload: payload}
	}
	client, server = side(left, right), side(right, left)
	client.Begins = true
	return client, server
}

// runBoth runs both sides. If one fails, it stops the other.
func runBoth(t *testing.T, client, server *Exchange) (clientErr, serverErr error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := server.Run(ctx, nil)
		if err != nil {
			stop()
		}
		ended <- err
	}()
	clientErr = client.Run(ctx, nil)
	if clientErr != nil {
		stop()
	}
	return clientErr, <-ended
}

func TestPingpong(t *testing.T) {
	for _, size := range []int{0, 1, 1024} {
		const count = 3*cardtest.Depth + 5
		client, server := pingpongPair(t, size, count)
		if clientErr, serverErr := runBoth(t, client, server); clientErr != nil || serverErr != nil {
			t.Fatalf("%d bytes: %v, %v", size, clientErr, serverErr)
		}
		for _, p := range []*Exchange{client, server} {
			if p.Sent != count || p.Received != count || p.Endpoint.Finish(t.Context()) != nil {
				t.Errorf("%d bytes: sent %d, received %d, or sends are outstanding", size, p.Sent, p.Received)
			}
		}
		if len(client.Trips) != count || len(server.Trips) != count-1 {
			t.Errorf("%d and %d round trips", len(client.Trips), len(server.Trips))
		}
	}
}

func TestPingpongRejectsWrongMessages(t *testing.T) {
	for _, row := range []struct {
		want  string
		spoil func(server *Exchange)
	}{
		{"byte 63 of 64: got 0x7a, want 0x7b", func(server *Exchange) { fillWith(server, 63, 0x7a) }},
		{"byte 0 of 64: got 0x7b, want 0x00; use --check on both sides", func(server *Exchange) { fillWith(server, 0, 0x7b) }},
		{"got 64 bytes, want 63", func(server *Exchange) { server.Size = 63 }},
	} {
		client, server := pingpongPair(t, 64, 10)
		row.spoil(server)
		clientErr, serverErr := runBoth(t, client, server)
		err := errors.Join(clientErr, serverErr)
		if !errors.Is(err, unix.EBADMSG) || !strings.Contains(err.Error(), "message 1: "+row.want) {
			t.Errorf("%v, want an error with %q", err, row.want)
		}
	}
}

func fillWith(p *Exchange, offset int, value byte) {
	payload := Payload(p.Size)
	payload[offset] = value
	p.Data = payload
}

// TestPingpongIgnoresOthers: messages of other queue pairs are ignored.
func TestPingpongIgnoresOthers(t *testing.T) {
	client, server := pingpongPair(t, 8, 1)
	server.Peer++
	server.Timeout = 50 * time.Millisecond
	clientErr, serverErr := runBoth(t, client, server)
	if !errors.Is(serverErr, ErrNothingCame) || server.Received != 0 || clientErr == nil {
		t.Errorf("received %d: %v; %v", server.Received, serverErr, clientErr)
	}
}

func TestPingpongLosesAMessage(t *testing.T) {
	client, _ := pingpongPair(t, 8, 1)
	client.Timeout = time.Millisecond
	if err := client.Run(t.Context(), nil); !errors.Is(err, ErrNothingCame) || client.Sent != 1 || client.Received != 0 {
		t.Errorf("sent %d, received %d: %v", client.Sent, client.Received, err)
	}
}
