// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// CompVectors is the number of completion vectors of a card. They are goroutines of the program, which call its
// handlers.
const CompVectors = 8

// Handle identifies an object of a session. Each session has its own handles.
type Handle uint32

// Provider is a program's session on a card. Work requests and completions do not pass through it, but through the
// queues that grants contain.
//
// Its methods are safe for concurrent use. A Provider checks every field of a request. A command holds no lock that
// posting or polling needs. Each error wraps one of package verbs' Err values, and the host's error if there is one.
// Package verbs/verbstest tests all of this.
type Provider interface {
	Doer

	// Claim reserves the session for a Context. The error is ErrBusy if it already has one.
	Claim() error

	// Doorbell returns the memory in which posts are announced. Wake is called when its Ring reports that the card
	// sleeps.
	Doorbell() *ring.Doorbell
	Wake()

	// GetAsyncEvent waits for an event. Context.GetAsyncEvent documents which events are queued, and the conditions
	// that end the wait.
	GetAsyncEvent(ctx context.Context) (EventReport, error)

	// Done is closed when the session has ended. Err then gives the reason: ErrClosed after Close,
	// ErrDeviceFatal when the card failed or the connection to it ended. Commands return the same
	// error; those that free an object work until Close.
	Done() <-chan struct{}
	Err() error
	// Close frees all objects of the session. Posted requests are sent first.
	Close() error
}

// Progressor is implemented by a Provider whose card runs in the program's process, and which the program can run while
// it polls or waits. Package verbs calls it, programs do not.
type Progressor interface {
	// Progress runs one round of the card in the caller's thread. It returns false, without a round, if another thread
	// is running one.
	Progress() bool
	// BeginWait announces that the caller will sleep until a completion arrives, and EndWait that it has woken. In
	// between the card must not rely on this caller to run it.
	BeginWait()
	EndWait()
	// NoteReady announces that the caller was about to wait, and found a completion.
	NoteReady()
}

// Leader is implemented by a Provider for which one of the goroutines that wait for completions can do the work that
// produces them: run the card, or read the service's signals. Package verbs calls it, programs do not.
type Leader interface {
	// Lead does the work in the caller's thread, and sleeps while idle. It returns true when it has received
	// from events, closed is closed, the session has ended or ctx is done. It returns false immediately if the caller
	// must wait for these itself. If the Provider is a Progressor, the caller has called BeginWait.
	Lead(ctx context.Context, events, closed <-chan struct{}) (over bool)
	// WakeLeader is called when closed has been closed.
	WakeLeader()
}

// Spinner is implemented by a Provider whose card runs in another process, which may need the processor on which
// a program polls an empty queue. Package verbs calls it, programs do not.
type Spinner interface {
	// Yield lets other threads of the host run.
	Yield()
	// Doze waits until the card signals any event, has sent one to events, or 1 ms has passed. The caller has armed the
	// queues that it polls.
	Doze(events <-chan struct{})
}

// EventReport is an asynchronous event as a card reports it.
type EventReport struct {
	Type    ib.EventType
	Port    uint8  // for events of a port
	EventID uint64 // for events of a CQ, SRQ or queue pair: the one that it was created with
}
