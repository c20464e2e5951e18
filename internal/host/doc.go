// Package host gives a card access to the machine's network: it enters network namespaces, asks
// what an interface's addresses, routes and neighbours are now, and reports which of them have
// changed.
//
//	Namespace ── stays entered: sockets opened in it stay in it          namespace.go
//	Queries ── one question, one answer ──────────────► kernel           queries.go
//	follower ◄── notifications, filtered by the kernel ─ kernel          follower.go
//	    │        one per namespace and process, for all subscriptions    follow.go, queues.go
//	    └─► Changes: says what has changed, not how it is now            changes.go
//	          └─► Pending, Pace: gathered, and looked at in turn         pending.go, pace.go
//
// A subscriber uses a change only to know what to ask again, because the state may change between
// the kernel's notification and its reading. So the order of changes does not matter; when changes
// were lost, the subscriber asks for everything; many changes of one thing need one question; and a
// question that fails is asked again.
//
// Queries and subscriptions are opened on a thread inside the network namespace; their sockets stay
// in it. A Queries may be used by several goroutines, one question at a time. The follower has
// goroutines of its own, which call the methods of Changes; they must not block. It ends when the
// last subscription is closed.
//
// Left out: changing the host (memberships, kernel knobs), except for neighbour entries that the
// kernel is asked to keep fresh.
package host
