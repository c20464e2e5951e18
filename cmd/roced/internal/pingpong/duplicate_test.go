package pingpong

import (
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"github.com/roced/roced/verbs"
)

func TestPingOfAnswersThatComeTwice(t *testing.T) {
	const count = 10
	left, right := cardtest.Aimed(t)
	served := make(chan error, 1)
	go func() { served <- cardtest.AnswerTwice(t.Context(), right, count) }()
	p := &Exchange{Endpoint: left, Begins: true, Numbers: true, Peer: right.QP.Number(), Size: 8, Count: count, Timeout: time.Hour, Sleep: true}
	if err := errors.Join(p.Run(t.Context(), nil), <-served); err != nil {
		t.Fatal(err)
	}
	cardtest.CheckTrips(t, p.Trips, count)
}

// TestPingOfQuestionsThatComeTwice: the server answers each once.
func TestPingOfQuestionsThatComeTwice(t *testing.T) {
	left, right := cardtest.Aimed(t)
	server := &Exchange{Endpoint: right, Peer: left.QP.Number(), Size: 8, Count: 2, Timeout: time.Hour, Sleep: true}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(t.Context(), nil) }()
	left.Shape(8, verbs.WRSendWithImm)
	for i, number := range []uint32{1, 1, 1, 2} {
		_, wr := left.SendBuffer(i)
		wr.ImmData = number
	}
	if err := errors.Join(left.PostSends(4), <-ended); err != nil {
		t.Fatal(err)
	}
	var wcs [4]verbs.WC
	for _, want := range []uint32{1, 2} {
		if _, err := left.Receive(t.Context(), true, wcs[:1]); err != nil || wcs[0].ImmData != want {
			t.Errorf("an answer to %d, want %d: %v", wcs[0].ImmData, want, err)
		}
	}
}

// TestPingWithoutNumbers: a peer as ibv_ud_pingpong gives none, and is sent none after its
// first answer. What is there when nothing is due counts for nothing.
func TestPingWithoutNumbers(t *testing.T) {
	left, right := cardtest.Aimed(t)
	p := &Exchange{Endpoint: left, Begins: true, Numbers: true, Peer: right.QP.Number(), Size: 8, Count: 2, Timeout: time.Hour, Sleep: true}
	left.Shape(8, verbs.WRSend)
	right.Shape(8, verbs.WRSend)
	if err := errors.Join(p.send(t.Context()), right.PostSends(2), right.ReapAll(t.Context(), true)); err != nil {
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
	var wcs [2]verbs.WC
	cardtest.AwaitDelivered(t, right.Device, 2)
	n, err := right.Arrived(wcs[:])
	if err != nil || n != 2 || wcs[0].Flags&verbs.WCWithImm == 0 || wcs[1].Flags&verbs.WCWithImm != 0 {
		t.Errorf("%d questions, %v: %v", n, wcs, err)
	}
}
