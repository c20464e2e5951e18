// Package verbstest is what every verbs.Provider must pass: the API's promises, asked through the
// API alone.
//
//	func TestVerbs(t *testing.T) { verbstest.Run(t, newPair) }
//
//	Run ── newPair(t) ──► Pair    A: a session ┐         ┌ B: a session
//	 │                               on a card ┴─ reach ─┴ on another card
//	 └─ each test ──────► world   station a                station b
//	                              Context, PD, MR, CQ, QP  the same
//
// A new Provider is put under it by a function that makes a Pair: two sessions that no Context
// has claimed, and the addresses of their cards. It is called for each test, with that test's T,
// and gives back what it opened in its Cleanup; where pairs do not disturb each other it begins
// with t.Parallel. What a Provider may lack is a function of Pair or End that is nil: then the
// tests that need it do not run, or do not look.
//
// The tests let the card run by itself and wait for what must come. That nothing else comes
// they know by a message that is sent after it (world.settle). Each error of each command
// is held to be one of package verbs (judge.go), and command.go and handle.go ask as a hostile client would.
//
// One noun a file, and the table of all in run.go. Left out: what shows inside the card only
// (steering, leaks, counters but drops), and what the host does (routes, neighbours,
// IGMP): those are tests of verbs/hca.
package verbstest
