// SPDX-License-Identifier: Apache-2.0

package pingpong

import (
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"github.com/roced/roced/verbs/ud"
)

func TestPingOfDuplicateResponses(t *testing.T) {
	const count = 10
	left, right := cardtest.Wire(t)
	served := make(chan error, 1)
	go func() { served <- cardtest.AnswerTwice(t.Context(), right, count) }()
	p := &Exchange{Endpoint: left, To: right.LocalAddr(), Data: make([]byte, 8), Begins: true, Numbers: true, Peer: right.QPN(), Size: 8, Count: count, Timeout: time.Hour, Sleep: true}
	if err := errors.Join(p.Run(t.Context(), nil), <-served); err != nil {
		t.Fatal(err)
	}
	cardtest.CheckTrips(t, p.Trips, count)
}

// TestPingOfDuplicateRequests: the server does not respond to a duplicate.
func TestPingOfDuplicateRequests(t *testing.T) {
	left, right := cardtest.Wire(t)
	server := &Exchange{Endpoint: right, To: left.LocalAddr(), Data: make([]byte, 8), Peer: left.QPN(), Size: 8, Count: 2, Timeout: time.Hour, Sleep: true}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(t.Context(), nil) }()
	var questions []ud.Message
	for _, number := range []uint32{1, 1, 1, 2} {
		questions = append(questions, ud.Message{To: right.LocalAddr(), Data: make([]byte, 8), Imm: number, HasImm: true})
	}
	if err := errors.Join(left.SendAll(t.Context(), questions), <-ended); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint32{1, 2} {
		if m, err := left.Recv(t.Context()); err != nil || m.Imm != want {
			t.Errorf("response to %d, want %d: %v", m.Imm, want, err)
		}
	}
}

// TestPingWithoutNumbers: the client stops numbering if the first response has no number, as from ibv_ud_pingpong.
// Unexpected messages are ignored.
func TestPingWithoutNumbers(t *testing.T) {
	left, right := cardtest.Wire(t)
	p := &Exchange{Endpoint: left, To: right.LocalAddr(), Data: make([]byte, 8), Begins: true, Numbers: true, Peer: right.QPN(), Size: 8, Count: 2, Timeout: time.Hour, Sleep: true}
	answer := ud.Message{To: left.LocalAddr(), Data: make([]byte, 8)}
	if err := errors.Join(p.send(t.Context()), right.SendAll(t.Context(), []ud.Message{answer, answer})); err != nil {
		t.Fatal(err)
	}
	cardtest.AwaitDelivered(t, left.Device, 2)
	if err := errors.Join(p.receive(t.Context()), p.send(t.Context())); err != nil {
		t.Fatal(err)
	}
	p.Timeout = time.Millisecond
	if err := p.receive(t.Context()); !errors.Is(err, ErrNothingCame) || p.Received != 1 {
		t.Errorf("received %d: %v", p.Received, err)
	}
	var questions [2]ud.Message
	cardtest.AwaitDelivered(t, right.Device, 2)
	n, err := right.Arrived(questions[:])
	if err != nil || n != 2 || !questions[0].HasImm || questions[1].HasImm {
		t.Errorf("%d questions, %v: %v", n, questions, err)
	}
}
