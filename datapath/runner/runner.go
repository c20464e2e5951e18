// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync/atomic"
	"time"
)

// Rounds is the work that a runner runs in rounds, one at a time.
type Rounds interface {
	// Round waits until no other goroutine runs a round, and runs one. worked reports whether it found work; more,
	// whether it left work that must continue without a new frame or call.
	Round() (worked, more bool)
	// LastRound is called instead of Round before the worker parks, when programs run the rounds. It does nothing if a
	// program is running a round, or if there are no posts that were not followed by a call.
	LastRound() (worked, more bool)
	// Rest announces the worker's new state. Unless it is Busy, programs must call when they post.
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

// RetryTime is the time for which the worker stays parked before it checks whether programs still run rounds, and for
// which it sleeps before it retries a full link.
const RetryTime = time.Millisecond

// Config configures a Runner.
type Config struct {
	// Spin is the time for which the worker polls for work before it sleeps. With 0 it sleeps as soon as there is no
	// work.
	Spin time.Duration
	// Alone is true if no program of this process runs rounds. The worker then sleeps in epoll_wait(2): a frame, or a
	// call of another process, wakes only its thread.
	Alone bool
	// Descriptors are the descriptors that are readable when frames have arrived.
	Descriptors []int
	// InMemory is true if the link has no descriptors, and its senders call Arrived.
	InMemory bool
}

// Runner assigns rounds to goroutines.
type Runner struct {
	rounds  Rounds
	sleeper sleeper
	worker  worker
	leader  leader
	alarm   alarm
	waiters atomic.Int32  // number of programs that sleep until they have a completion
	kicks   atomic.Uint32 // number of posts that ran a round while the worker slept
	ready   atomic.Int32  // number of consecutive waits that needed no sleep, up to manyReady
}

// New returns a runner. Start starts its worker; programs may run rounds before that.
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

// Arrived notifies the runner that a frame has arrived while the worker sleeps. Any goroutine may call it, even after
// Stop.
func (r *Runner) Arrived() { r.sleeper.arrived() }

// Start starts the worker.
func (r *Runner) Start() {
	r.worker.started = true
	go r.work()
}

// End makes the worker end as soon as it is awake, because there are no more rounds. The caller may hold the lease.
func (r *Runner) End() { r.worker.stop.Store(true) }

// Stop ends the worker, waits for it, and ends the leader's sleep. It must be called only once, by any goroutine that
// does not hold the lease.
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

// Call wakes a worker that is asleep or parked. The caller has published the work before; the load of the state pairs
// with turnTo. Any goroutine may call it.
func (r *Runner) Call() {
	switch r.State() {
	case Asleep:
		r.sleeper.wake()
	case Parked:
		select {
		case r.worker.unpark <- struct{}{}:
		default: // a call is already pending
		}
	}
}

// SleepOn replaces the link's descriptors. From then on the new ones wake the worker and the leader, and the old ones
// may be closed.
func (r *Runner) SleepOn(descriptors []int) { r.sleeper.sleepOn(descriptors) }

// NotePolling notes that a program has run a round in its own thread, or has tried to.
func (r *Runner) NotePolling() { note(&r.worker.polling, true) }

// manyKicks is the number of kicks without a wait in between after which a program is assumed to run all rounds by
// posting. The worker is then parked. If it stayed asleep, the kernel would notify it of each frame, including sent
// ones, which costs time.
const manyKicks = 16

// NoteKick notes that a program has posted and run a round for the post in its own thread.
func (r *Runner) NoteKick() {
	if r.State() == Asleep && r.waiters.Load() == 0 && r.kicks.Add(1) == manyKicks {
		r.Call()
	}
}

// BeginWait announces that a program is about to sleep until it has a completion. From now on the worker or a leader
// runs the rounds, even while other programs poll.
func (r *Runner) BeginWait() {
	r.waiters.Add(1) // before the state is loaded: pairs with turnTo followed by park
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

// manyReady is the number of consecutive waits without a sleep after which programs are assumed to be saturated; see
// sleeper.leave.
const manyReady = 2

// NoteReady notes that a program was about to wait and found a completion.
func (r *Runner) NoteReady() {
	if r.kicks.Load() != 0 {
		r.kicks.Store(0)
	}
	if r.ready.Load() < manyReady && r.ready.Add(1) == manyReady && r.State() == Asleep {
		r.sleeper.leave(&r.waiters)
	}
}
