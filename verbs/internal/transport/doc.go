// SPDX-License-Identifier: Apache-2.0

// Package transport implements the common part of the endpoints of package ud and the connections of package rc: the
// slots of requests, the buffers of messages, the polling that frees them, and the lifetime of an endpoint.
//
//	fill ─copy─► slot ─► Post ───► send queue ──► card        Life ── ends ──► goroutines that wait
//	              ▲── Settle ── Await, Poll ◄── completions
//	lend ◄─────── buffer ◄─ Take ◄─ completions ◄── card
//	Return ─────► posted again, several at a time
//
// Sends does not know destinations or memory of peers, and Receives does not know headers. Their owners provide
// functions that set the fields of requests and convert completions to messages. Sends and Receives call them one at a
// time.
//
// # Waiting
//
// Of the goroutines that wait for completions of sends, one polls the CQ; it wakes the others when it has settled
// completions. Each goroutine that waits for messages waits on the CQ of receives, with its own array for completions.
//
// # Locks
//
// The order is Sends.polling (a channel), Sends.mu, then Receives.mu or Life.mu. No goroutine waits or executes a
// command under the last three. Functions of the owner run under Sends.mu or Receives.mu, so they may acquire only
// locks that follow these.
package transport
