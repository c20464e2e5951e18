// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"golang.org/x/sys/unix"
)

// After the exchange of addresses, client and server of perf send each other lines of JSON over the
// same connection:
//
//	client                         server
//	request: the tests      ──►
//	                        ◄──    greeting: the device, or the reason for a refusal
//	for each test:
//	                        ◄──    turn: receives are posted, start
//	datagrams               ──►    (for latency: and back)
//	turn: number sent       ──►
//	                        ◄──    outcome: received and dropped messages
//
// Version must change whenever an older peer would misinterpret a message.
const Version = 1

// TestKind is the kind of a measurement.
type TestKind string

const (
	Bandwidth TestKind = "bandwidth"
	Latency   TestKind = "latency"
)

// Test is one measurement: the part that the server needs.
type Test struct {
	Kind  TestKind `json:"kind"`
	Size  int      `json:"size"`  // bytes of payload
	Sleep bool     `json:"sleep"` // the server sleeps while it waits; else it spins
}

type Request struct {
	Version int    `json:"version"`
	Tests   []Test `json:"tests"`
}

// Required returns the fields without which meet.Message is invalid.
func (Request) Required() []string { return []string{"version", "tests"} }

// MaxTests is the maximum number of tests in a request.
const MaxTests = 1000

// Check validates a request on the server, which does not trust clients.
func (r *Request) Check(mtu int) error {
	switch {
	case r.Version != Version:
		return fmt.Errorf("%w: the client's protocol is version %d, the server's %d; use the same roced on both sides", unix.EPROTONOSUPPORT, r.Version, Version)
	case len(r.Tests) == 0 || len(r.Tests) > MaxTests:
		return fmt.Errorf("%w: %d tests; a request must have 1 to %d", unix.EINVAL, len(r.Tests), MaxTests)
	}
	for _, t := range r.Tests {
		if t.Kind != Bandwidth && t.Kind != Latency {
			return fmt.Errorf("%w: unknown test %.80q", unix.EINVAL, t.Kind)
		}
		if err := card.CheckSize(t.Size, mtu); err != nil {
			return err
		}
	}
	return nil
}

type Greeting struct {
	Error  string    `json:"error,omitempty"`
	Server card.Side `json:"server"`
}

func (Greeting) Required() []string { return nil } // a rejection may contain only its reason

// Turn passes the turn to the other side: the server sends it when it is ready, the client when it has sent all
// messages.
type Turn struct {
	Sent uint64 `json:"sent"`
}

func (Turn) Required() []string { return []string{"sent"} }

// Outcome is the server's result of a test.
type Outcome struct {
	Error    string            `json:"error,omitempty"`
	Received uint64            `json:"received"`
	Elapsed  time.Duration     `json:"elapsed_ns"` // first to last arrival
	Drops    map[string]uint64 `json:"drops"`      // by place and name; each packet is counted once
	Link     map[string]uint64 `json:"link_drops"` // counted by the interface; may repeat Drops
}

func (Outcome) Required() []string { return []string{"received", "elapsed_ns"} }
