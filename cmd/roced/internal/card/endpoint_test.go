// SPDX-License-Identifier: Apache-2.0

package card_test

import (
	"errors"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// TestCloseWaitsForSends: Close sends the queued messages.
func TestCloseWaitsForSends(t *testing.T) {
	left, right := cardtest.Wire(t)
	e, err := card.OpenEndpoint(left.Device, cardtest.Options)
	if err != nil {
		t.Fatal(err)
	}
	messages := make([]ud.Message, cardtest.Depth)
	for i := range messages {
		messages[i].To = right.LocalAddr()
	}
	if err := errors.Join(e.SendAll(t.Context(), messages), e.Close()); err != nil {
		t.Fatal(err)
	}
	for got := 0; got < cardtest.Depth; {
		n, err := right.Receive(t.Context(), true, messages)
		if err != nil {
			t.Fatalf("received %d of %d: %v", got, cardtest.Depth, err)
		}
		got += n
		right.Release(messages[:n])
	}
}

// TestMessagesBeforeAFailure: messages received before a failure are returned first, then the
// failure.
func TestMessagesBeforeAFailure(t *testing.T) {
	left, right := cardtest.Wire(t)
	to := right.LocalAddr()
	if err := errors.Join(left.SendAll(t.Context(), []ud.Message{{To: to}, {To: to}, {To: to}}), left.Finish(t.Context())); err != nil {
		t.Fatal(err)
	}
	cardtest.AwaitDelivered(t, right.Device, 3)
	if err := right.Device.Close(); err != nil {
		t.Fatal(err)
	}
	var messages [4]ud.Message
	if n, err := right.Arrived(messages[:]); n != 3 || err != nil {
		t.Errorf("%d messages: %v", n, err)
	}
	if n, err := right.Arrived(messages[:]); n != 0 || err == nil {
		t.Errorf("got %d messages from a closed device", n)
	}
}

// TestAimNamesTheSource: Aim to a peer of the other IP version fails with an error that contains the source address.
func TestAimNamesTheSource(t *testing.T) {
	left, right := cardtest.Wire(t)
	o := cardtest.Options
	o.Source = left.LocalAddr().IP()
	e, err := card.OpenEndpoint(left.Device, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Aim(t.Context(), right.LocalAddr()); err != nil {
		t.Error(err)
	}
	if err := e.Aim(t.Context(), ud.Addr{QPN: 5, GID: [16]byte{0: 0xfd, 15: 1}}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("%v", err)
	}
}
