package datapath

import "github.com/roced/roced/datapath/runner"

// Waiter is a program that sleeps until a completion comes.
type Waiter = runner.Waiter

// BeginWait announces that a program is about to sleep until a completion comes. From now on the
// worker or a leader runs the engine, even while other programs poll.
func (e *Engine) BeginWait() { e.runner.BeginWait() }

// EndWait ends what BeginWait began.
func (e *Engine) EndWait() { e.runner.EndWait() }

// NoteReady says that a program was about to wait, and a completion was there.
func (e *Engine) NoteReady() { e.runner.NoteReady() }

// Lead makes a program that waits the leader, and returns true when it need not wait any more. It
// returns false, at once, if another program waits too or the worker is not asleep: then the program
// has to wait for its event. The caller has called BeginWait.
func (e *Engine) Lead(waiter Waiter) (over bool) { return e.runner.Lead(waiter) }

// WakeLeader makes the leader look whether it need not wait any more. Any goroutine may call it.
func (e *Engine) WakeLeader() { e.runner.WakeLeader() }

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
func (e *Engine) EndCalls(fd int) { e.runner.EndCalls(fd) }
