// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"runtime"
	"sync/atomic"
	"time"
)

// worker runs rounds when no program does.
//
// It is an ordinary goroutine, not locked to a thread.
//
// If programs of this process run rounds too, it sleeps in the runtime's poller. Measurements have shown that sleeping
// in epoll_wait(2) is slower: whenever the thread sleeps, the runtime's monitor (sysmon) must retake its P, and runs
// every 20 µs to do so, which reduces the throughput of a program that polls by a tenth. Also, a goroutine that a
// completion wakes runs immediately on the worker's thread when the worker yields.
//
// If all programs are other processes (Config.Alone), epoll_wait(2) is faster, because each wake-up through the poller
// wakes three or four threads.
type worker struct {
	spin    time.Duration
	alone   bool
	started bool
	doing   atomic.Uint32 // a State
	polling atomic.Bool   // a program has run a round, or has tried to, since the worker last checked
	unpark  chan struct{} // of capacity 1
	stop    atomic.Bool
	done    chan struct{}

	looks    int       // number of polls since the worker last found work
	spinning bool      // if alone: a try is in progress
	tries    spin      // if alone
	yielded  time.Time // if alone: time of the last yield
}

func (w *worker) init(c Config) {
	w.spin, w.alone = c.Spin, c.Alone
	w.done = make(chan struct{})
	w.unpark = make(chan struct{}, 1)
}

func (w *worker) state() State { return State(w.doing.Load()) }

// manyRounds is the number of rounds with work and without a sleep after which the worker stops watching the sockets.
const manyRounds = 16

// callRounds is the number of rounds of a busy worker between two checks for calls of other processes.
const callRounds = 32

func (r *Runner) work() {
	w := &r.worker
	defer close(w.done)
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
			// Let the waiting programs run: their next requests are then sent together in one round.
			if !w.alone && r.waiters.Load() > 0 {
				runtime.Gosched()
			}
			continue
		}
		if !w.alone {
			runtime.Gosched() // let goroutines run that a completion has woken
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
// completion. Programs that wait may need the worker to receive frames.
func (r *Runner) notNeeded() bool {
	return r.worker.polling.Load() && r.worker.polling.Swap(false) && r.waiters.Load() == 0
}

// yieldGap is the interval at which a worker that sleeps in epoll_wait(2) yields. After 10 ms without a yield, the
// runtime's monitor (sysmon) would run every 20 µs, and retake the P of the worker while it sleeps.
const yieldGap = 5 * time.Millisecond

func (w *worker) yieldSometimes(now time.Time) {
	if w.alone && now.Sub(w.yielded) >= yieldGap {
		w.yielded = now
		runtime.Gosched()
	}
}

// looksOn reports whether the worker polls for work once more before it sleeps. Programs in other processes may need
// its processor, so a worker that is alone spins only as often as spinning has found work (see spin).
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

// rest announces that the worker stops polling, runs a last round, and then sleeps or parks according to state. It does
// not sleep if the last round found work.
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
	r.worker.doing.Store(uint32(state)) // before the last round, and park: pairs with State in Call and BeginWait
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
	if r.waiters.Load() != 0 { // after turnTo: pairs with BeginWait
		return
	}
	timer := time.NewTimer(RetryTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.worker.unpark:
	}
}
