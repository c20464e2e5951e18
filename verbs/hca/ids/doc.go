// Package ids is the connection ids of a card (rdma_cm), and the connection manager that they use: a clock, a lock
// and a goroutine for the state machine of package cm, on QP 1.
//
//	program's commands           ┌────────────┐  messages   ┌─────┐
//	   Session ── ID ── With ──► │ cm.Manager │ ◄─────────► │ QP1 │ ── a session of the card's own
//	      ▲                      └────────────┘             └─────┘
//	      └── CMEvent ◄── events ──────┘ Manager: lock, clock, goroutine
//
// A Session is one program's ids and the channels of their events (id.go, and a file for each thing that ids do:
// resolve, connect, listen, join). A wait, for a next hop or for the host to join, goes on in a goroutine of
// the id, which ends with the id. Events wait in their channel (event.go). Ports belong to a network namespace
// (ports.go): cards in one share them.
//
// QP 1 is the manager's from when the card opens; its goroutine sleeps while nothing happens (manager.go, gsi.go). A
// privileged program can have QP 1 instead, while no connection id uses the manager.
//
// What is asked of the card (asked.go) is two interfaces: Card, and Program, which is the session that the ids belong to. Out
// of scope: the messages themselves (cm), groups' memberships (Join), routes (paths).
//
// Locks, in order: Manager.serving, Session.mu, then the card's, or Manager.mu, or that of the Ports. No other lock
// is taken under Manager.mu or that of the Ports. CMEvent is called without a lock.
package ids
