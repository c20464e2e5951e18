// SPDX-License-Identifier: Apache-2.0

// Package ids implements the connection ids of a card (rdma_cm), and the connection manager that they use: a clock, a
// lock and a goroutine for the state machine of package cm, on QP 1.
//
//	program's commands           ┌────────────┐  messages   ┌─────┐
//	   Session ── ID ── With ──► │ cm.Manager │ ◄─────────► │ QP1 │ ── CardSession: the card's own
//	      ▲                      └────────────┘             └─────┘
//	      └── CMEvent ◄── events ──────┘ Manager: lock, clock, goroutine
//
// A Session has one program's ids and the channels of their events, in two tables of package handles, and the commands
// on them (id.go, and a file for each operation: resolve, connect, listen, join). A wait, for a next hop or for the
// host to join, runs in a goroutine of the id, which ends with the id. Events are queued in their channel (event.go).
// Ports belong to a network namespace (ports.go), and its cards share them.
//
// The manager has QP 1 from the opening of the card on; its goroutine sleeps while nothing happens (manager.go,
// gsi.go). A privileged program can have QP 1 instead, while no connection id uses the manager.
//
// The package uses these parts of its card (asked.go): Card, which is the card's port; Program, the session to which
// the ids belong; Groups, the session's memberships; and a few functions. Out of scope: the messages themselves (cm),
// routes (paths).
//
// Locks, in order: Manager.serving, Session.mu, then the card's, or Manager.mu, or that of the Ports. No other lock is
// acquired under Manager.mu or that of the Ports. CMEvent is called without a lock.
package ids
