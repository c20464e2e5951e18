// Package verbstest tests a provider.Provider: the promises of the verbs API, using only that API. Every
// Provider must pass it.
//
//	func TestVerbs(t *testing.T) { verbstest.Run(t, newPair) }
//
//	Run ── newPair(t) ──► Pair    A: a session ┐         ┌ B: a session
//	 │                               on a card ┴─ reach ─┴ on another card
//	 └─ each test ──────► World   Station A                Station B
//	                              Context, PD, MR, CQ, QP  the same
//
// To test a new Provider, write a function that makes a Pair: two sessions that no Context has claimed, and the
// addresses of their cards. Run calls it for each test, with that test's T; the function closes what it opened in
// T's Cleanup. If pairs do not disturb each other, it starts with t.Parallel. Required are Pair.Unreachable and,
// for each End, the Provider, IPv4, IPv6, LinkLocal and MAC. A function of Pair or End that a Provider cannot
// support is nil. Tests that need it then do not run, or omit the check. The package's example makes a Pair.
//
// The tests let the card run by itself and wait for what must come. To find out that nothing else
// comes, they send one more message and wait for that (rig.World.Settle). What happens seldom they try five times
// as often where the environment has ROCED_ROUNDS=all.
//
//	verbstest ──► ids      connection ids
//	    │    └──► hostile  a client that keeps to no rule
//	    ▼
//	   rig      stations and what they do ◄── model: random calls, compared with a model of the specification
//
// run.go has the table of all tests. Left out: what shows only inside the card (steering, leaks,
// counters other than drops), and what the host does (routes, neighbours, IGMP). Those are tests of
// verbs/hca.
package verbstest
