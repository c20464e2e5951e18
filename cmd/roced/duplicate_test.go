package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

// answerTime is how long the server of these tests takes: no round trip is shorter.
const answerTime = 5 * time.Millisecond

// aimedHosts are two on a wire in memory, each aimed at the other.
func aimedHosts(t *testing.T) (left, right *host) {
	t.Helper()
	left, right = wireHosts(t)
	there, back := &stream{from: left, to: right, version: "IPv4"}, &stream{from: right, to: left, version: "IPv4"}
	if err := errors.Join(there.aimAt(), back.aimAt()); err != nil {
		t.Fatal(err)
	}
	return left, right
}

// answerTwice is a server behind a network that brings each answer again, when the next
// question has come and is not answered yet.
func answerTwice(ctx context.Context, e *endpoint, count int) error {
	e.shape(8, verbs.WRSendWithImm)
	var completions [1]verbs.WC
	send := func(number uint32) error {
		_, wr := e.sendBuffer(0)
		wr.ImmData = number
		return e.postSends(1)
	}
	for range count {
		if _, err := e.receive(ctx, true, completions[:]); err != nil {
			return err
		}
		number := completions[0].ImmData
		if err := send(number - 1); err != nil {
			return err
		}
		time.Sleep(answerTime)
		if err := errors.Join(send(number), e.postRecvs(1), e.reapAll(ctx, true)); err != nil {
			return err
		}
	}
	return nil
}

func checkTrips(t *testing.T, times []time.Duration, want int) {
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

func TestLatencyOfAnswersThatComeTwice(t *testing.T) {
	const count = 10
	left, right := aimedHosts(t)
	served := make(chan error, 1)
	go func() { served <- answerTwice(t.Context(), right.endpoint, count) }()
	p := &pinger{e: left.endpoint, sleep: true}
	left.shape(8, verbs.WRSendWithImm)
	times, err := p.trips(t.Context(), count, nil)
	if err := errors.Join(err, <-served); err != nil {
		t.Fatal(err)
	}
	checkTrips(t, times, count-p.lost)
}

func TestPingOfAnswersThatComeTwice(t *testing.T) {
	const count = 10
	left, right := aimedHosts(t)
	served := make(chan error, 1)
	go func() { served <- answerTwice(t.Context(), right.endpoint, count) }()
	p := &pingpong{e: left.endpoint, begins: true, numbers: true, peer: right.qp.Number(), size: 8, count: count, timeout: time.Hour, sleep: true}
	if err := errors.Join(p.run(t.Context(), nil), <-served); err != nil {
		t.Fatal(err)
	}
	checkTrips(t, p.trips, count)
}

// TestPingOfQuestionsThatComeTwice: the server answers each once.
func TestPingOfQuestionsThatComeTwice(t *testing.T) {
	left, right := aimedHosts(t)
	server := &pingpong{e: right.endpoint, peer: left.qp.Number(), size: 8, count: 2, timeout: time.Hour, sleep: true}
	ended := make(chan error, 1)
	go func() { ended <- server.run(t.Context(), nil) }()
	left.shape(8, verbs.WRSendWithImm)
	for i, number := range []uint32{1, 1, 1, 2} {
		_, wr := left.sendBuffer(i)
		wr.ImmData = number
	}
	if err := errors.Join(left.postSends(4), <-ended); err != nil {
		t.Fatal(err)
	}
	var wcs [4]verbs.WC
	for _, want := range []uint32{1, 2} {
		if _, err := left.receive(t.Context(), true, wcs[:1]); err != nil || wcs[0].ImmData != want {
			t.Errorf("an answer to %d, want %d: %v", wcs[0].ImmData, want, err)
		}
	}
}

// TestPingWithoutNumbers: a peer as ibv_ud_pingpong gives none, and is sent none after its
// first answer. What is there when nothing is due counts for nothing.
func TestPingWithoutNumbers(t *testing.T) {
	left, right := aimedHosts(t)
	p := &pingpong{e: left.endpoint, begins: true, numbers: true, peer: right.qp.Number(), size: 8, count: 2, timeout: time.Hour, sleep: true}
	left.shape(8, verbs.WRSend)
	right.shape(8, verbs.WRSend)
	if err := errors.Join(p.send(t.Context()), right.postSends(2), right.reapAll(t.Context(), true)); err != nil {
		t.Fatal(err)
	}
	awaitDelivered(t, left.device, 2)
	if err := errors.Join(p.receive(t.Context()), p.send(t.Context())); err != nil {
		t.Fatal(err)
	}
	p.timeout = time.Millisecond
	if err := p.receive(t.Context()); !errors.Is(err, errNothingCame) || p.received != 1 {
		t.Errorf("received %d: %v", p.received, err)
	}
	var wcs [2]verbs.WC
	awaitDelivered(t, right.device, 2)
	n, err := right.arrived(wcs[:])
	if err != nil || n != 2 || wcs[0].Flags&verbs.WCWithImm == 0 || wcs[1].Flags&verbs.WCWithImm != 0 {
		t.Errorf("%d questions, %v: %v", n, wcs, err)
	}
}

func awaitDelivered(t *testing.T, d *device, wanted uint64) {
	t.Helper()
	err := poll(t.Context(), func() (bool, error) {
		all, err := d.cardCounters()
		return count(all, "engine", "delivered") >= wanted, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
