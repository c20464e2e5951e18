package main

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// wireHosts are two hosts on a wire in memory, which needs no privileges.
func wireHosts(t *testing.T) (left, right *host) {
	t.Helper()
	addr := func(s string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(s)} }
	a, b, err := hca.OpenWire(addr("10.77.0.1"), addr("10.77.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	return wireHost(t, "left", a), wireHost(t, "right", b)
}

func wireHost(t *testing.T, name string, card *hca.Card) *host {
	t.Helper()
	t.Cleanup(func() { card.Close() })
	ctx, err := verbs.Open(card)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{name: name, device: &device{Context: ctx, card: card, mtu: 1024}}
	if h.endpoint, err = newEndpoint(h.device, endpointAttr{depth: window, size: h.mtu, qkey: testQKey}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.endpoint.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestStream(t *testing.T) {
	left, right := wireHosts(t)
	for direction, hosts := range [][2]*host{{left, right}, {right, left}} {
		for _, size := range []int{0, 1, 1024} {
			s := &stream{from: hosts[0], to: hosts[1], direction: direction, size: size, messages: 3*window + 5, version: "IPv4"}
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.received != s.messages || s.withImmediate != s.messages/4 {
				t.Errorf("%d of %d messages, %d with immediate data", s.received, s.messages, s.withImmediate)
			}
		}
	}
}

// TestStreamFindsWhatIsWrong: a check that lets a wrong message through shows nothing.
func TestStreamFindsWhatIsWrong(t *testing.T) {
	left, right := wireHosts(t)
	s := &stream{from: left, to: right, size: 64, messages: 1000, version: "IPv4"}
	if err := s.aimAt(); err != nil {
		t.Fatal(err)
	}
	left.shape(s.size, verbs.WRSend)
	const number = 3 // the first with immediate data
	payload, wr := left.sendBuffer(0)
	s.write(payload, wr, number)
	if err := left.postSends(1); err != nil {
		t.Fatal(err)
	}
	if _, err := right.receive(t.Context(), true, s.completions[:1]); err != nil {
		t.Fatal(err)
	}
	good := s.completions[0]
	if err := s.check(&good, number); err != nil {
		t.Fatal(err)
	}
	const grh, firstByte, lastByte = 39, 40, 40 + 63
	for _, row := range []struct {
		want  string
		spoil func(wc *verbs.WC, buffer []byte)
	}{
		{"63 bytes", func(wc *verbs.WC, _ []byte) { wc.ByteLen-- }},
		{"from QP", func(wc *verbs.WC, _ []byte) { wc.SrcQP++ }},
		{"GRH", func(_ *verbs.WC, b []byte) { b[grh]++ }},
		{"with immediate data: false", func(wc *verbs.WC, _ []byte) { wc.Flags &^= verbs.WCWithImm }},
		{"immediate data 4", func(wc *verbs.WC, _ []byte) { wc.ImmData++ }},
		{"byte 0 of 64", func(_ *verbs.WC, b []byte) { b[firstByte] ^= 0x80 }},
		{"byte 63 of 64", func(_ *verbs.WC, b []byte) { b[lastByte] ^= 1 }},
	} {
		wc, buffer := good, right.recvBuffer(&good)
		before := append([]byte(nil), buffer...)
		row.spoil(&wc, buffer)
		if err := s.check(&wc, number); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want an error that says %q", err, row.want)
		}
		copy(buffer, before)
	}
	if s.check(&good, number+1) == nil || s.check(&good, number+4) == nil {
		t.Error("a message passes for another one")
	}
}

func TestStreamIsStopped(t *testing.T) {
	left, right := wireHosts(t)
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	s := &stream{from: left, to: right, messages: 1 << 30, version: "IPv4"}
	if err := s.run(ctx); !errors.Is(err, cause) {
		t.Errorf("run: %v, want the cause", err)
	}
}

func TestPattern(t *testing.T) {
	const size = 1024
	payload := make([]byte, size)
	newPattern(0, 7).fill(payload)
	if err := newPattern(0, 7).check(payload); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]pattern{
		"direction": newPattern(1, 7), "next": newPattern(0, 8), "256 later": newPattern(0, 263), "65536 later": newPattern(0, 65543),
	} {
		if other.check(payload) == nil {
			t.Errorf("%s: the pattern is the same", name)
		}
	}
	copy(payload[512:], payload[:512])
	if newPattern(0, 7).check(payload) == nil {
		t.Error("the two halves are the same")
	}
}
