package card_test

import (
	"errors"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cardtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// TestFlushedReceivesAreNoMessages: those before them are.
func TestFlushedReceivesAreNoMessages(t *testing.T) {
	left, right := cardtest.Aimed(t)
	left.Shape(0, verbs.WRSend)
	if err := errors.Join(left.PostSends(3), left.ReapAll(t.Context(), true)); err != nil {
		t.Fatal(err)
	}
	cardtest.AwaitDelivered(t, right.Device, 3)
	if err := right.QP.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState); err != nil {
		t.Fatal(err)
	}
	var wcs [4]verbs.WC
	n, err := right.Arrived(wcs[:])
	if n != 3 || !errors.Is(err, unix.ECANCELED) {
		t.Errorf("%d messages: %v", n, err)
	}
}

// TestCloseWaitsForSends: posted and not reaped is not lost.
func TestCloseWaitsForSends(t *testing.T) {
	left, right := cardtest.Wire(t)
	e, err := card.NewEndpoint(left.Device, card.EndpointAttr{Depth: cardtest.Depth, Size: cardtest.Size, QKey: card.TestQKey})
	if err != nil {
		t.Fatal(err)
	}
	cardtest.Aim(t, e, right)
	e.Shape(0, verbs.WRSend)
	if err := errors.Join(e.PostSends(cardtest.Depth), e.Close()); err != nil {
		t.Fatal(err)
	}
	var wcs [cardtest.Depth]verbs.WC
	for got := 0; got < cardtest.Depth; {
		n, err := right.Receive(t.Context(), true, wcs[:])
		if err != nil {
			t.Fatalf("%d of %d came: %v", got, cardtest.Depth, err)
		}
		got += n
	}
}

// TestTrafficClass: it is the TOS of the IPv4 header that the receiver is given.
func TestTrafficClass(t *testing.T) {
	left, right := cardtest.Wire(t)
	e, err := card.NewEndpoint(left.Device, card.EndpointAttr{Depth: 1, Size: 0, QKey: card.TestQKey, TrafficClass: 0x6a})
	if err != nil {
		t.Fatal(err)
	}
	cardtest.Aim(t, e, right)
	e.Shape(0, verbs.WRSend)
	if err := e.PostSends(1); err != nil {
		t.Fatal(err)
	}
	var wcs [1]verbs.WC
	if _, err := right.Receive(t.Context(), true, wcs[:]); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	const tos = 20 + 1
	if got := right.RecvBuffer(&wcs[0])[tos]; got != 0x6a {
		t.Errorf("TOS 0x%02x", got)
	}
}
