// SPDX-License-Identifier: Apache-2.0

// Package runner decides which goroutine runs rounds of work: a worker, a program that polls or posts, or a program
// that waits. It is independent of the work in a round.
//
//	programs ── NotePolling, NoteKick, BeginWait, EndWait, NoteReady, Lead ──┐
//	work left, work of others ── Call, HearCalls ─────────────────────────┐  │
//	when the next round is due ── SetAlarm ────────────────────────────┐  │  │
//	                                                                   ▼  ▼  ▼
//	                                                                   Runner ── Round, LastRound, Rest ──► Rounds
//	                                                                      │
//	            frames ── descriptors of the link (SleepOn), or Arrived ──┘
//
// The worker ensures the next round. It is in one of three states:
//
//	        nothing to do for the spin time       programs poll or post all the time, and none waits
//	asleep ◄───────────────────────── busy ─────────────────────────► parked
//	  │                               ▲  ▲                              │
//	  └───────────────────────────────┘  └──────────────────────────────┘
//	   a frame, without a leader;           a call; a program begins to wait; 1 ms
//	   a call; the alarm; 1 ms, if the
//	   link did not accept all frames
//
// A busy worker runs rounds and finds new work without calls. In the other two states programs have to call, as
// Rounds.Rest announces. The worker makes this announcement before it stops polling, and then runs a last round, so
// that no work is missed. A goroutine that leaves work behind while the worker is asleep calls it.
//
// While the worker is asleep, a program that waits alone is the leader (leader.go): a frame wakes the leader instead of
// the worker, and it runs the round that completes its own request. When it leaves, frames wake the worker again
// (watch.go). If several programs wait, the worker runs the rounds for all.
//
// The worker and the leader sleep on a sleeper (sleeper.go): epoll sets if the link has descriptors or other processes
// call, channels if frames come from goroutines of this process. There, channels are faster, and work in
// testing/synctest bubbles.
//
// The alarm expires when work is due that no frame and no call announces. While the worker is parked and no program
// runs rounds, such work is up to 1 ms late.
//
// Rounds ensures that one round runs at a time (by the lease); SetAlarm and Close are called under it. The runner's
// only lock, the sleeper's mu, guards the choice of the goroutine that a frame wakes. It is not held during a round.
// The function passed to HearCalls is called under it, and acquires no lock.
package runner
