// SPDX-License-Identifier: Apache-2.0

package cardtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs/ud"
)

// answerTime is the delay of each response, and so the minimum round-trip time.
const answerTime = 5 * time.Millisecond

// AnswerTwice serves count requests and simulates a network that duplicates responses: after each request it first
// sends the response to the previous one again.
func AnswerTwice(ctx context.Context, e *card.Endpoint, count int) error {
	for range count {
		m, err := e.Recv(ctx)
		if err != nil {
			return err
		}
		answer := func(number uint32) error {
			return e.SendAll(ctx, []ud.Message{{To: m.From, Data: make([]byte, 8), Imm: number, HasImm: true}})
		}
		if err := answer(m.Imm - 1); err != nil {
			return err
		}
		time.Sleep(answerTime)
		err = errors.Join(answer(m.Imm), e.Finish(ctx))
		m.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckTrips checks the number of round trips, and that none is shorter than the response time of the server.
func CheckTrips(t *testing.T, times []time.Duration, want int) {
	t.Helper()
	if len(times) != want {
		t.Errorf("%d round trips, want %d", len(times), want)
	}
	for i, took := range times {
		if took < answerTime {
			t.Errorf("round trip %d took %v: the response was to the previous request", i, took)
		}
	}
}
