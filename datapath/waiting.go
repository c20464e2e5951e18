package datapath

import "github.com/roced/roced/datapath/runner"

// Waiter is a program that sleeps until a completion comes.
type Waiter = runner.Waiter

// waiters is what those call that wait for the card, without the lease.
type waiters struct{ runner *runner.Runner }

// BeginWait announces that a program is about to sleep until a completion comes. From now on the
// worker or a leader runs the engine, even while other programs poll.
func (w *waiters) BeginWait() { w.runner.BeginWait() }

// EndWait ends what BeginWait began.
func (w *waiters) EndWait() { w.runner.EndWait() }

// NoteReady says that a program was about to wait, and a completion was there.
func (w *waiters) NoteReady() { w.runner.NoteReady() }

// Lead makes a program that waits the leader, and returns true when it need not wait any more. It
// returns false, at once, if another program waits too or the worker is not asleep: then the program
// has to wait for its event. The caller has called BeginWait.
func (w *waiters) Lead(waiter Waiter) (over bool) { return w.runner.Lead(waiter) }

// WakeLeader makes the leader look whether it need not wait any more. Any goroutine may call it.
func (w *waiters) WakeLeader() { w.runner.WakeLeader() }

// Wake makes the worker look at a session's doorbell. Any goroutine may call it at any time.
func (e *Engine) Wake(s *Session) {
	e.call(s)
	e.runner.Call()
}

// HearCalls has the worker watch an eventfd, and take each write to it for a Wake of the session. Any goroutine may
// call it, except under the lease.
func (e *Engine) HearCalls(s *Session, fd int) error {
	return e.runner.HearCalls(fd, func() { e.call(s) })
}

// EndCalls ends HearCalls: the descriptor is not watched any more. Any goroutine may call it, except under the lease.
func (w *waiters) EndCalls(fd int) { w.runner.EndCalls(fd) }
