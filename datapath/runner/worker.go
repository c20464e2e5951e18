// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// worker runs rounds when no program does.
//
// It is an ordinary goroutine, not locked to a thread. If programs of this process run rounds too, it sleeps in the
// runtime's poller. The alternative, a thread in epoll_wait(2), was measured to be slower: whenever that thread sleeps,
// the runtime's monitor must take its P away and polls for that every 20 µs, which cost a program that polls inline a
// tenth of its messages. Also, a goroutine that a completion wakes runs at once on the worker's thread when the worker
// yields. If all programs are other processes (Config.Alone), the thread is faster: through the poller each wake-up
// wakes three or four threads.
type worker struct {
	spin    time.Duration
	alone   bool
	started bool
	doing   atomic.Uint32 // a State
	polling atomic.Bool   // a program ran a round, or tried to, since the worker last checked
	unpark  chan struct{} // of capacity 1
	stop    atomic.Bool
	done    chan struct{}

	looks    int  // polls since the worker last found work
	spinning bool // of a worker that is alone
	tries    spin
	yielded  time.Time
}

func (w *worker) init(c Config) {
	w.spin, w.alone = c.Spin, c.Alone
	w.done = make(chan struct{})
	w.unpark = make(chan struct{}, 1)
}

func (w *worker) state() State { return State(w.doing.Load()) }

// manyRounds is the number of rounds with work, without a sleep in between, after which the kernel stops watching the
// sockets for the worker.
const manyRounds = 16

// callRounds is the number of rounds of a busy worker between checks for calls of other processes.
const callRounds = 32

func (r *Runner) work() {
	w := &r.worker
	defer close(w.done)
	debug.SetPanicOnFault(true) // rounds contain faults of shared memory that is not mapped
	lastWork, busy := time.Now(), 0
	for !w.stop.Load() {
		if r.notNeeded() {
			r.rest(Parked)
			lastWork = time.Now()
			continue
		}
		if worked, _ := r.rounds.Round(); worked {
			w.found()
			w.looks = 0
			if busy++; busy == manyRounds {
				r.sleeper.ignore()
			}
			if busy%callRounds == 0 {
				r.sleeper.takeCalls()
			}
			lastWork = time.Now()
			if !w.alone && r.waiters.Load() > 0 { // what they post next leaves with the frames of one round
				runtime.Gosched()
			}
			continue
		}
		if !w.alone {
			runtime.Gosched() // let a goroutine run that a completion has woken
		}
		if !w.looksOn(lastWork) || r.alarm.events.Load() { // delayed events need no low latency
			busy, w.looks = 0, 0
			r.rest(Asleep)
			if r.kicks.Swap(0) < manyKicks {
				w.polling.Store(false) // a program that polled meanwhile may have stopped long ago
			}
			lastWork = time.Now()
			w.yieldSometimes(lastWork)
		}
	}
}

// notNeeded reports whether a program has run rounds since the worker last checked, and no program waits for a
// completion. A program that waits may need the worker to receive frames.
func (r *Runner) notNeeded() bool {
	return r.worker.polling.Load() && r.worker.polling.Swap(false) && r.waiters.Load() == 0
}

// yieldGap is the interval at which a worker that sleeps in its thread yields. Without a yield for 10 ms, the runtime's
// monitor would wake every 20 µs, and take its P away while it sleeps.
const yieldGap = 5 * time.Millisecond

func (w *worker) yieldSometimes(now time.Time) {
	if w.alone && now.Sub(w.yielded) >= yieldGap {
		w.yielded = now
		runtime.Gosched()
	}
}

// looksOn reports whether the worker polls for work once more before it sleeps. Programs of other processes may need
// its processor, so for them it spins only if that has found work.
func (w *worker) looksOn(lastWork time.Time) bool {
	switch {
	case !w.alone:
		w.looks++
		return w.looks < mostLooks(w.spin) && time.Since(lastWork) < w.spin
	case !w.spinning:
		w.spinning = w.spin > 0 && w.tries.begin()
	case !w.tries.goesOn(w.spin):
		w.spinning = false
		w.tries.end(false, w.spin)
	}
	return w.spinning
}

// found records that the worker has found work.
func (w *worker) found() {
	if w.spinning {
		w.spinning = false
		w.tries.end(true, w.spin)
	}
}

// rest announces that the worker stops polling, runs a last round, and waits according to state. It does not sleep if
// the last round found work.
func (r *Runner) rest(state State) {
	r.turnTo(state)
	worked, more := r.lastRound(state)
	switch {
	case r.worker.stop.Load():
	case state == Parked:
		r.sleeper.ignore()
		r.park()
		r.sleeper.takeCalls()
	case worked:
	case more:
		r.sleeper.sleep(RetryTime)
	default:
		r.sleeper.sleep(0)
	}
	r.turnTo(Busy)
}

func (r *Runner) turnTo(state State) {
	r.worker.doing.Store(uint32(state)) // pairs with State in Call and BeginWait: the last round, or park, follows it
	r.rounds.Rest(state)
}

func (r *Runner) lastRound(state State) (worked, more bool) {
	if state == Parked {
		return r.rounds.LastRound()
	}
	return r.rounds.Round()
}

// park waits for a call, at most for RetryTime. It does not wait if a program waits for a completion.
func (r *Runner) park() {
	if r.waiters.Load() != 0 { // pairs with BeginWait; turnTo precedes it
		return
	}
	timer := time.NewTimer(RetryTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.worker.unpark:
	}
}
