// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// lastRound is a card that publishes a completion and ends, while an empty poll runs it.
type lastRound struct {
	provider.Provider
	provider.Progressor
	end func()
}

func (l *lastRound) Progress() bool {
	l.end()
	l.end = func() {}
	return false
}

func (l *lastRound) Err() error { return ErrDeviceFatal }

// TestCompletionsComeBeforeTheEnd checks that a poll reports the end of the card only when no completion is left, even
// if the card publishes the last one after the poll has checked the queue.
func TestCompletionsComeBeforeTheEnd(t *testing.T) {
	queues, cards := spinning(t, &busyHost{}, 1)
	cq, ctx, done := queues[0], queues[0].ctx, make(chan struct{})
	token, err := ctx.slots.take()
	if err != nil {
		t.Fatal(err)
	}
	ctx.slots.at(token).qp.Store(&QP{})
	card := &lastRound{end: func() {
		cards[0].Put(&ring.CQE{Token: token})
		cards[0].Publish()
		close(done)
	}}
	ctx.manners, ctx.provider, ctx.progress, ctx.done = nil, card, card, done
	var wcs [1]WC
	n, err := cq.Poll(wcs[:])
	if n == 0 && err == nil {
		n, err = cq.Poll(wcs[:])
	}
	if n != 1 || err != nil {
		t.Errorf("got %d completions and error %v, want the last completion", n, err)
	}
	if _, err := cq.Poll(wcs[:]); !errors.Is(err, ErrDeviceFatal) {
		t.Errorf("got error %v after the last completion", err)
	}
}
