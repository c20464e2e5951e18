package perf

import (
	"errors"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"github.com/roced/roced/verbs"
)

func TestLatencyOfAnswersThatComeTwice(t *testing.T) {
	const count = 10
	left, right := cardtest.Aimed(t)
	served := make(chan error, 1)
	go func() { served <- cardtest.AnswerTwice(t.Context(), right, count) }()
	p := &pinger{e: left, sleep: true}
	left.Shape(8, verbs.WRSendWithImm)
	times, err := p.trips(t.Context(), count, nil)
	if err := errors.Join(err, <-served); err != nil {
		t.Fatal(err)
	}
	cardtest.CheckTrips(t, times, count-p.lost)
}
