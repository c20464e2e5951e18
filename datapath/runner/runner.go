// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync/atomic"
	"time"
)

// Rounds is the work that a runner runs in rounds, one at a time.
type Rounds interface {
	// Round runs a round when no other goroutine runs one. worked reports that it found work; more, that it left work
	// that no frame and no call will announce again.
	Round() (worked, more bool)
	// LastRound is Round before the worker parks. Programs then run the rounds: LastRound does nothing if a program is
	// running one, or if every post was followed by a call.
	LastRound() (worked, more bool)
	// Rest announces the worker's new state. Unless it is Busy, programs have to call when they post.
	Rest(State)
}

// State is the state of a worker; see the package comment.
type State uint32

// The states of a worker.
const (
	Busy   State = iota // runs rounds; needs no call
	Asleep              // waits for a frame or a call
	Parked              // a program runs the rounds; waits for a call, or for RetryTime
)

func (s State) String() string { return [...]string{"busy", "asleep", "parked"}[s] }

// RetryTime is the time that the worker stays parked before it checks whether programs still run rounds, and that it
// sleeps before it retries a full link.
const RetryTime = time.Millisecond

// Config configures a Runner.
type Config struct {
	// Spin is the time that the worker polls for work before it sleeps. With zero it sleeps as soon as there is no
	// work.
	Spin time.Duration
	// Alone states that no program of this process runs rounds. The worker then sleeps in its thread: a frame, or a
	// call of another process, wakes only this thread of the runtime.
	Alone bool
	// Descriptors are readable when frames have arrived.
	Descriptors []int
	// InMemory states that the link has no descriptors, and its senders call Arrived.
	InMemory bool
}

// Runner assigns rounds to goroutines.
type Runner struct {
	rounds  Rounds
	sleeper sleeper
	worker  worker
	leader  leader
	alarm   alarm
	waiters atomic.Int32  // programs that sleep until they have a completion
	kicks   atomic.Uint32 // number of posts that ran a round while the worker slept
	ready   atomic.Int32  // number of consecutive waits that needed no sleep, up to manyReady
}

// New returns a runner. Its worker runs after Start; programs may run rounds before.
func New(c Config, rounds Rounds) (*Runner, error) {
	r := &Runner{rounds: rounds}
	r.worker.init(c)
	if c.InMemory && !c.Alone {
		s := newSignals()
		r.sleeper, r.alarm.timer = s, newRuntimeTimer(s.arrived)
		return r, nil
	}
	alarm, err := newKernelTimer()
	if err != nil {
		return nil, err
	}
	r.alarm.timer = alarm
	if r.sleeper, err = newDescriptors(c, alarm.fd); err != nil {
		r.alarm.close()
		return nil, err
	}
	return r, nil
}

// Arrived reports that a frame has arrived while the worker sleeps. Any goroutine may call it, even after Stop.
func (r *Runner) Arrived() { r.sleeper.arrived() }

// Start starts the worker.
func (r *Runner) Start() {
	r.worker.started = true
	go r.work()
}

// End makes the worker end when it is awake, as there are no more rounds. The caller may hold the lease.
func (r *Runner) End() { r.worker.stop.Store(true) }

// Stop ends the worker and the leader's sleep. Any goroutine may call it once, except under the lease.
func (r *Runner) Stop() {
	r.End()
	if r.worker.started {
		r.Call()
		<-r.worker.done
	}
	r.sleeper.close()
}

// Close releases the alarm, which Stop leaves open. The caller holds the lease. Afterwards SetAlarm does nothing.
func (r *Runner) Close() { r.alarm.close() }

// State returns the state of the worker.
func (r *Runner) State() State { return r.worker.state() }

// Call wakes a worker that is asleep or parked. The caller has published the work before, and State pairs with turnTo.
// Any goroutine may call it.
func (r *Runner) Call() {
	switch r.State() {
	case Asleep:
		r.sleeper.wake()
	case Parked:
		select {
		case r.worker.unpark <- struct{}{}:
		default: // it has already been called
		}
	}
}

// SleepOn replaces the descriptors. Sleepers are woken by the new ones from then on; the old ones may be closed.
func (r *Runner) SleepOn(descriptors []int) { r.sleeper.sleepOn(descriptors) }

// NotePolling reports that a program runs rounds in its own thread, or tried to.
func (r *Runner) NotePolling() { note(&r.worker.polling, true) }

// manyKicks is the number of kicks, without a wait in between, after which a program is assumed to run the rounds by
// posting alone. The worker is then parked. If it slept instead, it would watch the sockets, which costs the kernel
// time for each frame, including sent ones.
const manyKicks = 16

// NoteKick reports that a program has posted and run a round for the post in its own thread.
func (r *Runner) NoteKick() {
	if r.State() == Asleep && r.waiters.Load() == 0 && r.kicks.Add(1) == manyKicks {
		r.Call()
	}
}

// BeginWait announces that a program is about to sleep until it has a completion. From now on the worker or a leader
// runs the rounds, even while other programs poll.
func (r *Runner) BeginWait() {
	r.waiters.Add(1) // then State: pairs with turnTo, and then park
	r.kicks.Store(0)
	r.ready.Store(0)
	if r.State() == Parked {
		r.Call()
	}
}

// EndWait ends a BeginWait.
func (r *Runner) EndWait() { r.waiters.Add(-1) }

// Waiters returns the number of programs between BeginWait and EndWait.
func (r *Runner) Waiters() int { return int(r.waiters.Load()) }

// manyReady is the number of consecutive waits without a sleep after which a program is assumed to be saturated. See
// sleeper.leave.
const manyReady = 2

// NoteReady reports that a program was about to wait and found a completion.
func (r *Runner) NoteReady() {
	if r.kicks.Load() != 0 {
		r.kicks.Store(0)
	}
	if r.ready.Load() < manyReady && r.ready.Add(1) == manyReady && r.State() == Asleep {
		r.sleeper.leave(&r.waiters)
	}
}
