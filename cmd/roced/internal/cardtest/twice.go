package cardtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
)

// answerTime is how long the server of these tests takes: no round trip is shorter.
const answerTime = 5 * time.Millisecond

// AnswerTwice is a server behind a network that brings each answer again, when the next
// question has come and is not answered yet.
func AnswerTwice(ctx context.Context, e *card.Endpoint, count int) error {
	e.Shape(8, verbs.WRSendWithImm)
	var completions [1]verbs.WC
	send := func(number uint32) error {
		_, wr := e.SendBuffer(0)
		wr.ImmData = number
		return e.PostSends(1)
	}
	for range count {
		if _, err := e.Receive(ctx, true, completions[:]); err != nil {
			return err
		}
		number := completions[0].ImmData
		if err := send(number - 1); err != nil {
			return err
		}
		time.Sleep(answerTime)
		if err := errors.Join(send(number), e.PostRecvs(1), e.ReapAll(ctx, true)); err != nil {
			return err
		}
	}
	return nil
}

// CheckTrips insists on so many round trips, none shorter than the server takes.
func CheckTrips(t *testing.T, times []time.Duration, want int) {
	t.Helper()
	if len(times) != want {
		t.Errorf("%d round trips, want %d", len(times), want)
	}
	for i, took := range times {
		if took < answerTime {
			t.Errorf("round trip %d took %v: that answer was to the question before", i, took)
		}
	}
}
