package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// pingpongPair is both sides on a wire in memory, aimed at each other.
func pingpongPair(t *testing.T, size, count int) (client, server *pingpong) {
	t.Helper()
	left, right := wireHosts(t)
	there, back := &stream{from: left, to: right, version: "IPv4"}, &stream{from: right, to: left, version: "IPv4"}
	if err := errors.Join(there.aimAt(), back.aimAt()); err != nil {
		t.Fatal(err)
	}
	side := func(h *host, peer *host) *pingpong {
		payload := pingPayload(size)
		h.fill(payload)
		return &pingpong{e: h.endpoint, peer: peer.qp.Number(), size: size, count: count, timeout: time.Hour, payload: payload}
	}
	client, server = side(left, right), side(right, left)
	client.begins = true
	return client, server
}

// runBoth runs the sides against each other. One that fails stops the other.
func runBoth(t *testing.T, client, server *pingpong) (clientErr, serverErr error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := server.run(ctx, nil)
		if err != nil {
			stop()
		}
		ended <- err
	}()
	clientErr = client.run(ctx, nil)
	if clientErr != nil {
		stop()
	}
	return clientErr, <-ended
}

func TestPingpong(t *testing.T) {
	for _, size := range []int{0, 1, 1024} {
		const count = 3*window + 5
		client, server := pingpongPair(t, size, count)
		if clientErr, serverErr := runBoth(t, client, server); clientErr != nil || serverErr != nil {
			t.Fatalf("%d bytes: %v, %v", size, clientErr, serverErr)
		}
		for _, p := range []*pingpong{client, server} {
			if p.sent != count || p.received != count || p.e.sending != 0 {
				t.Errorf("%d bytes: sent %d, received %d, %d not completed", size, p.sent, p.received, p.e.sending)
			}
		}
		if len(client.trips) != count || len(server.trips) != count-1 {
			t.Errorf("%d and %d round trips", len(client.trips), len(server.trips))
		}
	}
}

func TestPingpongFindsWhatIsWrong(t *testing.T) {
	for _, row := range []struct {
		want  string
		spoil func(server *pingpong)
	}{
		{"byte 63 of 64 is 0x7a, not 0x7b", func(server *pingpong) { fillWith(server, 63, 0x7a) }},
		{"byte 0 of 64 is 0x7b, not 0x00; do both sides use -c", func(server *pingpong) { fillWith(server, 0, 0x7b) }},
		{"64 bytes, not 63", func(server *pingpong) { server.size = 63 }},
	} {
		client, server := pingpongPair(t, 64, 10)
		row.spoil(server)
		clientErr, serverErr := runBoth(t, client, server)
		err := errors.Join(clientErr, serverErr)
		if !errors.Is(err, unix.EBADMSG) || !strings.Contains(err.Error(), "message 1: "+row.want) {
			t.Errorf("%v, want one that says %q", err, row.want)
		}
	}
}

func fillWith(p *pingpong, offset int, value byte) {
	payload := pingPayload(p.size)
	payload[offset] = value
	p.e.fill(payload)
}

// TestPingpongPassesOverStrangers: a message of another queue pair counts for nothing.
func TestPingpongPassesOverStrangers(t *testing.T) {
	client, server := pingpongPair(t, 8, 1)
	server.peer++
	server.timeout = 50 * time.Millisecond
	clientErr, serverErr := runBoth(t, client, server)
	if !errors.Is(serverErr, errNothingCame) || server.received != 0 || clientErr == nil {
		t.Errorf("received %d: %v; %v", server.received, serverErr, clientErr)
	}
}

func TestPingpongLosesAMessage(t *testing.T) {
	client, _ := pingpongPair(t, 8, 1)
	client.timeout = time.Millisecond
	if err := client.run(t.Context(), nil); !errors.Is(err, errNothingCame) || client.sent != 1 || client.received != 0 {
		t.Errorf("sent %d, received %d: %v", client.sent, client.received, err)
	}
}

// TestPingPayload: as ibv_ud_pingpong's capture with -c has it.
func TestPingPayload(t *testing.T) {
	if got := string(pingPayload(4)); got != "\x00{{{" {
		t.Errorf("%q", got)
	}
	if got := pingPayload(4096); len(got) != 4096 || got[4095] != '{' {
		t.Errorf("%d bytes, the last 0x%02x", len(got), got[len(got)-1])
	}
	if got := pingPayload(0); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestTrafficClass: it is the TOS of the IPv4 header that the receiver is given.
func TestTrafficClass(t *testing.T) {
	left, right := wireHosts(t)
	left.trafficClass = 0x6a
	s := &stream{from: left, to: right, version: "IPv4"}
	if err := s.aimAt(); err != nil {
		t.Fatal(err)
	}
	left.shape(0, verbs.WRSend)
	if err := left.postSends(1); err != nil {
		t.Fatal(err)
	}
	if _, err := right.receive(t.Context(), true, s.completions[:1]); err != nil {
		t.Fatal(err)
	}
	const tos = 20 + 1
	if got := right.recvBuffer(&s.completions[0])[tos]; got != 0x6a {
		t.Errorf("TOS 0x%02x", got)
	}
}
