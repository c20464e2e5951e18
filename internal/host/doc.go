// SPDX-License-Identifier: Apache-2.0

// Package host gives a card access to the machine's network: it enters network namespaces, queries addresses,
// routes and neighbours of an interface, and reports changes.
//
//	Namespace ── stays entered: sockets opened in it stay in it          namespace.go
//	Queries ── request, response ─────────────────────► kernel           queries.go
//	follower ◄── notifications, filtered by the kernel ─ kernel          follower.go
//	    │        one per namespace and process, for all subscriptions    follow.go, queues.go
//	    └─► Changes: reports what has changed, not the new state            changes.go
//	          └─► Pending, Pace: collect changes, limit the rate          pending.go, pace.go
//
// A change does not contain the new state, which may change again before the notification is delivered. It only states
// which part of the state a subscriber must query again. The order of changes is therefore irrelevant, several changes
// of one object need one query, a failed query is repeated, and after lost notifications the subscriber queries
// everything.
//
// Queries and subscriptions are opened on a thread inside the network namespace; their sockets stay in it.
// Queries can be used by several goroutines, one query at a time. The follower has its own goroutines, which
// call the methods of Changes; the methods must not block. The follower ends when the last subscription is
// closed.
//
// Out of scope: changing the host (memberships, kernel settings), except for neighbour entries that the
// kernel keeps fresh.
package host
