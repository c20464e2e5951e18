// SPDX-License-Identifier: Apache-2.0

// Package verbstest tests that a provider.Provider implements the verbs API. It uses only that API. Every Provider must
// pass it.
//
//	func TestVerbs(t *testing.T) { verbstest.Run(t, newPair) }
//
//	Run ── newPair(t) ──► Pair    A: a session ┐         ┌ B: a session
//	 │                               on a card ┴─ reach ─┴ on another card
//	 └─ each test ──────► World   Station A                Station B
//	                              Context, PD, MR, CQ, QP  the same
//
// To test a new Provider, write a function that returns a Pair: two unclaimed sessions, and the addresses of their
// cards. Run calls it for each test, with that test's T; the function closes what it opened in T's Cleanup. If pairs do
// not disturb each other, it starts with t.Parallel. Required are Pair.Unreachable and, for each End, the Provider,
// IPv4, IPv6, LinkLocal and MAC. A function of Pair or End that a Provider cannot support is nil; tests that need it
// are then skipped, or omit the check. The package's example creates a Pair.
//
// The tests wait for expected events while the card runs on its own. To check that no other event occurs, they send one
// more message and wait for it (rig.World.Settle). With ROCED_ROUNDS=all, tests of rare events run five times as often.
//
//	verbstest ──► ids      connection ids
//	    │    └──► hostile  a client that violates the protocol
//	    ▼
//	   rig      stations and their operations ◄── model: random calls, compared with a model of the specification
//
// run.go contains the table of all tests. Out of scope, and tested by verbs/hca: effects inside the card (steering, leaks,
// counters other than drops), and the host (routes, neighbours, IGMP).
package verbstest
