package demo

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"github.com/roced/roced/verbs"
)

// wireHosts are two hosts on a wire in memory.
func wireHosts(t *testing.T) (left, right *host) {
	t.Helper()
	a, b := cardtest.Wire(t)
	return &host{name: "left", Device: a.Device, Endpoint: a}, &host{name: "right", Device: b.Device, Endpoint: b}
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
	left.Shape(s.size, verbs.WRSend)
	const number = 3 // the first with immediate data
	payload, wr := left.SendBuffer(0)
	s.write(payload, wr, number)
	if err := left.PostSends(1); err != nil {
		t.Fatal(err)
	}
	if _, err := right.Receive(t.Context(), true, s.completions[:1]); err != nil {
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
		wc, buffer := good, right.RecvBuffer(&good)
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
