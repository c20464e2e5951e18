package runner

import (
	"sync/atomic"
	"time"
)

// Rounds is the work: what a runner has run in rounds, one at a time.
type Rounds interface {
	// Round runs a round when nobody else runs one. worked says that it found work; more, that it left some of which
	// no frame and no call will give notice again.
	Round() (worked, more bool)
	// LastRound is Round before the worker parks. Programs run the rounds then: it does nothing if one is doing so, or
	// if there is no post whose program did not call.
	LastRound() (worked, more bool)
	// Rest says what the worker does from now on. Unless it is busy, programs have to call when they post.
	Rest(State)
}

// State is what a worker does; see the package comment.
type State uint32

// The states of a worker.
const (
	Busy   State = iota // runs rounds; needs no call
	Asleep              // waits for a frame or a call
	Parked              // a program runs the rounds; waits for a call, or for RetryTime
)

func (s State) String() string { return [...]string{"busy", "asleep", "parked"}[s] }

// RetryTime is how long the worker stays parked before it checks that programs still run the rounds, and how long it
// sleeps before it tries a full link again.
const RetryTime = time.Millisecond

// Config says how to wait, and for what.
type Config struct {
	// Spin is how long the worker looks for work before it sleeps. With zero it sleeps as soon
	// as there is none.
	Spin time.Duration
	// Alone says that no program of this process runs rounds. Then the worker sleeps in its thread: a
	// frame, or a call of another process, wakes that, and no other thread of the runtime.
	Alone bool
	// Descriptors are readable when frames have come.
	Descriptors []int
	// InMemory says that the link has no descriptors, and its senders call Arrived.
	InMemory bool
}

// Runner has rounds run.
type Runner struct {
	rounds  Rounds
	sleeper sleeper
	worker  worker
	leader  leader
	alarm   alarm
	waiters atomic.Int32  // programs that sleep until a completion comes
	kicks   atomic.Uint32 // posts that ran a round while the worker slept
	ready   atomic.Int32  // waits in a row that need not sleep, up to manyReady
}

// New makes a runner. Its worker runs from Start on; programs may run rounds before.
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

// Arrived says that a frame has come, while the worker sleeps. Any goroutine may call it, also after Stop.
func (r *Runner) Arrived() { r.sleeper.arrived() }

// Start starts the worker.
func (r *Runner) Start() {
	r.worker.started = true
	go r.work()
}

// End has the worker end by itself, when it is awake: there are no rounds any more. The caller may hold the lease.
func (r *Runner) End() { r.worker.stop.Store(true) }

// Stop ends the worker, and the leader's sleep. It is called once, by any goroutine, except under the lease.
func (r *Runner) Stop() {
	r.End()
	if r.worker.started {
		r.Call()
		<-r.worker.done
	}
	r.sleeper.close()
}

// Close frees what Stop leaves. The caller holds the lease. SetAlarm does nothing from then on.
func (r *Runner) Close() { r.alarm.close() }

// State is what the worker does.
func (r *Runner) State() State { return r.worker.state() }

// Call wakes a worker that sleeps or is parked. The caller has published the work before, and State pairs with turnTo. Any
// goroutine may call it.
func (r *Runner) Call() {
	switch r.State() {
	case Asleep:
		r.sleeper.wake()
	case Parked:
		select {
		case r.worker.unpark <- struct{}{}:
		default: // it has been called already
		}
	}
}

// SleepOn replaces the descriptors. Who sleeps is woken by the new ones from then on; the old ones may be closed.
func (r *Runner) SleepOn(descriptors []int) { r.sleeper.sleepOn(descriptors) }

// NotePolling says that a program runs rounds in its own thread, or tried to.
func (r *Runner) NotePolling() { note(&r.worker.polling, true) }

// manyKicks is the number of kicks, without a wait in between, after which a program is taken to
// run the rounds by posting alone. The worker is then parked. If it slept instead, it would watch
// the sockets, and that costs the kernel time for each frame, also for each sent one.
const manyKicks = 16

// NoteKick says that a program has posted and run a round for it in its own thread.
func (r *Runner) NoteKick() {
	if r.State() == Asleep && r.waiters.Load() == 0 && r.kicks.Add(1) == manyKicks {
		r.Call()
	}
}

// BeginWait announces that a program is about to sleep until a completion comes. From now on the
// worker or a leader runs the rounds, even while other programs poll.
func (r *Runner) BeginWait() {
	r.waiters.Add(1) // then State: pairs with turnTo, and then park
	r.kicks.Store(0)
	r.ready.Store(0)
	if r.State() == Parked {
		r.Call()
	}
}

// EndWait ends what BeginWait began.
func (r *Runner) EndWait() { r.waiters.Add(-1) }

// Waiters is the number of programs between BeginWait and EndWait.
func (r *Runner) Waiters() int { return int(r.waiters.Load()) }

// manyReady is the number of waits in a row that need not sleep, after which a program is taken to have
// more to do than it can. See sleeper.leave.
const manyReady = 2

// NoteReady says that a program was about to wait, and a completion was there.
func (r *Runner) NoteReady() {
	if r.kicks.Load() != 0 {
		r.kicks.Store(0)
	}
	if r.ready.Load() < manyReady && r.ready.Add(1) == manyReady && r.State() == Asleep {
		r.sleeper.leave(&r.waiters)
	}
}
