package protocol

import (
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"golang.org/x/sys/unix"
)

// After the exchange of addresses, client and server of perf send each other lines of
// JSON over the same connection:
//
//	client                         server
//	request: the tests      ──►
//	                        ◄──    greeting: what device, or why not
//	for each test:
//	                        ◄──    turn: receives are posted, go
//	datagrams               ──►    (for latency: and back)
//	turn: so many were sent ──►
//	                        ◄──    outcome: what arrived, and what was dropped
//
// Version changes when one side would misunderstand the other.
const Version = 1

// TestKind is what is measured.
type TestKind string

const (
	Bandwidth TestKind = "bandwidth"
	Latency   TestKind = "latency"
)

// Test is one measurement, as far as the server must know it.
type Test struct {
	Kind  TestKind `json:"kind"`
	Size  int      `json:"size"`  // bytes of payload
	Sleep bool     `json:"sleep"` // the server sleeps while it waits; else it spins
}

type Request struct {
	Version int    `json:"version"`
	Tests   []Test `json:"tests"`
}

// Required is for meet.Message, as that of each message.
func (Request) Required() []string { return []string{"version", "tests"} }

// MaxTests bounds what a client may ask for.
const MaxTests = 1000

// Check is the server's, which does not trust clients.
func (r *Request) Check(mtu int) error {
	switch {
	case r.Version != Version:
		return fmt.Errorf("%w: the client's protocol is version %d, the server's %d; use the same roced on both sides", unix.EPROTONOSUPPORT, r.Version, Version)
	case len(r.Tests) == 0 || len(r.Tests) > MaxTests:
		return fmt.Errorf("%w: %d tests; 1 to %d can be asked for", unix.EINVAL, len(r.Tests), MaxTests)
	}
	for _, t := range r.Tests {
		if t.Kind != Bandwidth && t.Kind != Latency {
			return fmt.Errorf("%w: the server knows no test %.80q", unix.EINVAL, t.Kind)
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

func (Greeting) Required() []string { return nil } // a refusal may have only its reason

// Turn says that it is the other side's turn: the server sends it when it is ready, the client when it
// has sent all.
type Turn struct {
	Sent uint64 `json:"sent"`
}

func (Turn) Required() []string { return []string{"sent"} }

// Outcome is what the server saw of a test.
type Outcome struct {
	Error    string            `json:"error,omitempty"`
	Received uint64            `json:"received"`
	Elapsed  time.Duration     `json:"elapsed_ns"` // first to last arrival
	Drops    map[string]uint64 `json:"drops"`      // by place and name; no packet is in two
	Link     map[string]uint64 `json:"link_drops"` // what the interface counted, which may repeat them
}

func (Outcome) Required() []string { return []string{"received", "elapsed_ns"} }
