// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"github.com/roced/roced/verbs/ud"
)

// wireHosts returns two hosts on an in-memory network.
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

// TestStreamRejectsWrongMessages: the checks of a stream reject each kind of wrong message.
func TestStreamRejectsWrongMessages(t *testing.T) {
	left, right := wireHosts(t)
	s := &stream{from: left, to: right, size: 64, messages: 1000, version: "IPv4"}
	if err := s.aim(t.Context()); err != nil {
		t.Fatal(err)
	}
	const number = 3 // the first with immediate data
	s.write(&s.out[0], number)
	if err := left.SendAll(t.Context(), s.out[:1]); err != nil {
		t.Fatal(err)
	}
	good, err := right.Recv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check(&good, number); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		want  string
		spoil func(m *ud.Message)
	}{
		{"63 bytes", func(m *ud.Message) { m.Data = m.Data[:63] }},
		{"source QP", func(m *ud.Message) { m.From.QPN++ }},
		{"GRH", func(m *ud.Message) { m.From.GID[15]++ }},
		{"GRH", func(m *ud.Message) { m.To.GID[15]++ }},
		{"got immediate data: false", func(m *ud.Message) { m.HasImm = false }},
		{"immediate data 4", func(m *ud.Message) { m.Imm++ }},
		{"byte 0 of 64", func(m *ud.Message) { m.Data[0] ^= 0x80 }},
		{"byte 63 of 64", func(m *ud.Message) { m.Data[63] ^= 1 }},
	} {
		m := good
		m.Data = slices.Clone(good.Data)
		row.spoil(&m)
		if err := s.check(&m, number); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want an error with %q", err, row.want)
		}
	}
	if s.check(&good, number+1) == nil || s.check(&good, number+4) == nil {
		t.Error("the check accepts a message with another number")
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
