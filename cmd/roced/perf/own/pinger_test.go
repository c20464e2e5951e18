// SPDX-License-Identifier: Apache-2.0

package own

import (
	"errors"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cardtest"
)

func TestLatencyOfDuplicateResponses(t *testing.T) {
	const count = 10
	left, right := cardtest.Wire(t)
	served := make(chan error, 1)
	go func() { served <- cardtest.AnswerTwice(t.Context(), right, count) }()
	p := &pinger{e: left, peer: right.LocalAddr(), sleep: true}
	p.setSize(8)
	times, err := p.trips(t.Context(), count, nil)
	if err := errors.Join(err, <-served); err != nil {
		t.Fatal(err)
	}
	cardtest.CheckTrips(t, times, count-p.lost)
}
