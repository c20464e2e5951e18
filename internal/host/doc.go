// Package host is the machine as a card sees it, by netlink: what an interface's addresses,
// routes and neighbours are now, and which of them have changed.
//
//	Queries ── one question, one answer ──────────► kernel
//	Follower ◄── news, filtered by the kernel ───── kernel
//	    │
//	    └─► News: names what changed, not how. Whoever follows asks how it is now.
//
// News say what to look at and never what to believe: between the kernel's writing and
// the reader's reading things change again. So nothing depends on their order, news that were
// lost only mean that everything is looked at, and many changes of one thing are looked at
// once.
//
// Both are opened on a thread inside the network namespace (Space, which stays entered), and carry
// it from then on. A Queries may be used by several goroutines, one question at a time. A
// Follower has one reader.
//
// Left out as yet: what is set rather than asked (memberships, kernel knobs).
package host
