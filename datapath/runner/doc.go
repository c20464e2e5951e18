// Package runner decides who runs rounds of work: a worker, programs that poll or post, or a program that waits.
// It knows nothing of what a round does.
//
//	programs ── NotePolling, NoteKick, BeginWait, EndWait, NoteReady, Lead ──┐
//	work left, work of others ── Call, HearCalls ─────────────────────────┐  │
//	when the next round is due ── SetAlarm ────────────────────────────┐  │  │
//	                                                                   ▼  ▼  ▼
//	                                                                   Runner ── Round, LastRound, Rest ──► Rounds
//	                                                                      │
//	            frames ── descriptors of the link (SleepOn), or Arrived ──┘
//
// The worker makes sure that there is a next round. It is in one of three states:
//
//	        nothing to do for the spin time       programs poll or post all the time, and none waits
//	asleep ◄───────────────────────── busy ─────────────────────────► parked
//	  │                               ▲  ▲                              │
//	  └───────────────────────────────┘  └──────────────────────────────┘
//	   a frame, if no leader is there;      a call; a program begins to wait; 1 ms
//	   a call; the alarm; 1 ms, if the
//	   link could not take everything
//
// A busy worker runs rounds and finds new work by itself. In the other two states programs have to call (Rounds.Rest
// tells them so). Before the worker stops looking it first says so, and then runs a last round, so that nothing is
// missed. Whoever leaves work behind while the worker is asleep calls it.
//
// While the worker is asleep, a program that waits alone is the leader (leader.go): a frame wakes it and not the
// worker, and it runs the round that completes its own request. When it leaves, frames wake the worker again
// (watch.go). If several programs wait, the worker runs the rounds of all.
//
// What the two sleep on is a sleeper: epoll sets where the link has descriptors or other processes call, and channels
// where frames come from goroutines of this process (sleeper.go). Channels are faster there, and work in the bubbles of
// testing/synctest.
//
// The alarm rings when something is due that no frame and no call announces. While the worker is parked and nobody
// runs rounds any more, that comes up to 1 ms late.
//
// Rounds makes sure that one round runs at a time (by the lease); SetAlarm and Close are called under it. The
// runner's only lock, the sleeper's mu, guards what a frame wakes. It is not held during a round. The function that
// HearCalls was given is called under it, and takes no lock.
//
// Left out: what a round is; who may run one at a time (Rounds); how many rounds a program's work gets.
package runner
