// SPDX-License-Identifier: Apache-2.0

// Package transport is the common part of ud's endpoints and rc's connections: the slots of requests, the buffers of
// messages, the polling that frees them, and the lifetime of an endpoint.
//
//	fill ─copy─► slot ─► Post ───► send queue ──► card        Life ── ends ──► goroutines that wait
//	              ▲── Settle ── Await, Poll ◄── completions
//	lend ◄─────── buffer ◄─ Take ◄─ completions ◄── card
//	Return ─────► posted again, several at a time
//
// Sends is independent of destinations and memory of peers, and Receives of headers: their owners fill in requests, and
// convert completions to messages, in functions that Sends and Receives call one at a time.
//
// # Waiting
//
// Of the goroutines that wait for completions of sends, one polls the CQ; it wakes the others when it has settled
// completions. Goroutines that wait for messages each wait on the CQ of receives, with an array of their own.
//
// # Locks
//
// In order: Sends.polling (a channel), Sends.mu, Receives.mu or Life.mu. No goroutine waits or
// issues a command under the last three. Functions of the owner run under Sends.mu or Receives.mu, so they may only
// acquire locks that come after these.
package transport
