// SPDX-License-Identifier: Apache-2.0

// Package runner decides which goroutine runs rounds of work: a worker, a program that polls or posts, or a program
// that waits. It is independent of the work in a round.
//
//	programs ── NotePolling, NoteKick, BeginWait, EndWait, NoteReady, Lead ──┐
//	remaining work, other processes ── Call, HearCalls ───────────────────┐  │
//	time of the next round ── SetAlarm ────────────────────────────────┐  │  │
//	                                                                   ▼  ▼  ▼
//	                                                                   Runner ── Round, LastRound, Rest ──► Rounds
//	                                                                      │
//	            frames ── descriptors of the link (SleepOn), or Arrived ──┘
//
// The worker runs the next round if no program does. It is in one of three states:
//
//	          no work for the spin time           programs poll or post continuously, and none waits
//	asleep ◄───────────────────────── busy ─────────────────────────► parked
//	  │                               ▲  ▲                              │
//	  └───────────────────────────────┘  └──────────────────────────────┘
//	   a frame, without a leader;           a call; a program begins to wait; 1 ms
//	   a call; the alarm; 1 ms, if the
//	   link did not accept all frames
//
// A busy worker runs rounds and finds new work without calls. In the other two states programs must call when they
// post, which Rounds.Rest announces. The worker makes this announcement before it stops polling, and then runs a last
// round, so that no work is missed. A goroutine whose round leaves work calls a sleeping worker.
//
// While the worker is asleep, a program that waits alone is the leader (leader.go): a frame wakes the leader instead of
// the worker, and the leader runs the round that completes its own request. When it stops waiting, frames wake the
// worker again (watch.go). If several programs wait, the worker runs the rounds for all of them.
//
// The worker and the leader sleep on a sleeper (sleeper.go). It consists of epoll sets if the link has descriptors or
// other processes call, and of channels if frames are sent by goroutines of this process. In the latter case channels
// are faster, and they work in testing/synctest bubbles.
//
// The alarm expires when work is due that no frame and no call announces. While the worker is parked and no program
// runs rounds, such work is up to 1 ms late.
//
// The implementation of Rounds ensures, with the lease, that only one round runs at a time. SetAlarm and Close are
// called under the lease. The only lock of the runner is the sleeper's mu, which guards the choice of the goroutine
// that a frame wakes. It is not held during a round. The function passed to HearCalls is called under it, and must
// acquire no lock.
package runner
