// Package host is the machine as a card sees it: the network namespaces that it enters, what an
// interface's addresses, routes and neighbours are now, and which of them have changed.
//
//	Namespace ── stays entered: what is opened in it stays in it                namespace.go
//	Queries ── one question, one answer ──────────────► kernel                  queries.go
//	follower ◄── news, filtered by the kernel ───────── kernel                  follower.go
//	    │        one a namespace and process, for all who Follow there          follow.go
//	    └─► Changes: told what changed, not how. The subscriber asks how it is now. changes.go
//
// News say what to look at and never what to believe: between the kernel's writing and
// the reader's reading things change again. So nothing depends on their order, news that were
// lost only mean that everything is looked at, many changes of one thing are looked at
// once, and a look that fails is made again.
//
// Queries and subscriptions are opened on a thread inside the network namespace, and carry it
// from then on. A Queries may be used by several goroutines, one question at a time. The
// follower has a goroutine of its own, which calls News; they must not wait. It ends when the
// last who follows leaves.
//
// Left out: what is set rather than asked (memberships, kernel knobs), but for neighbours that
// are to be kept fresh.
package host
