package datapath

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// WorkerConfig says how a worker waits.
type WorkerConfig struct {
	// Spin is how long the worker looks for work before it sleeps. With zero it sleeps as soon
	// as there is none.
	Spin time.Duration
	// Alone says that no program of this process runs the engine. Then the worker sleeps in its thread: a
	// frame, or a call of another process, wakes that, and no other thread of the runtime.
	Alone bool
}

// retryTime is how long the worker stays parked before it checks that programs still run the
// engine, and how long it sleeps before it tries a full link again.
const retryTime = time.Millisecond

// The states of a worker; see the package comment.
const (
	workerBusy   uint32 = iota // runs rounds; needs no call
	workerAsleep               // waits for a frame or a call
	workerParked               // a program runs the engine; waits for a call, or for retryTime
)

// worker runs the engine when nobody else does.
//
// It is an ordinary goroutine, not locked to a thread. Where programs of this process run the engine too it
// sleeps in the runtime's poller. The alternative, a thread in epoll_wait(2), was measured and was worse
// there: whenever that thread sleeps, the runtime's monitor must take its P away and polls for that every
// 20 µs, which cost a program that polls inline a tenth of its messages. Also, a goroutine that a completion
// wakes runs at once on the worker's thread when the worker yields. Where all programs are other processes
// (WorkerConfig.Alone) the thread is better: through the poller each wake-up wakes three threads or four.
type worker struct {
	spin    time.Duration
	sleeper *sleeper
	started bool
	doing   atomic.Uint32 // workerBusy, workerAsleep or workerParked
	polling atomic.Bool   // a program ran a round, or tried to, since the worker last checked
	kicks   atomic.Uint32 // posts that ran a round while the worker slept
	waiters atomic.Int32  // programs that sleep until a completion comes
	ready   atomic.Int32  // waits in a row that need not sleep, up to manyReady
	unpark  chan struct{} // of capacity 1
	stop    atomic.Bool

	spinning bool // of a worker that is alone
	tries    spin
	yielded  time.Time
	done     chan struct{}
}

func (w *worker) init(c WorkerConfig, descriptors []int, alarmFD int, call func(*Session)) (err error) {
	w.spin = c.Spin
	w.done = make(chan struct{})
	w.unpark = make(chan struct{}, 1)
	w.sleeper, err = newSleeper(c, descriptors, alarmFD, call)
	return err
}

func (w *worker) is(doing uint32) bool { return w.doing.Load() == doing }

// call wakes a worker that sleeps or is parked. The caller has published the work before.
func (w *worker) call() {
	switch w.doing.Load() {
	case workerAsleep:
		w.sleeper.wake()
	case workerParked:
		select {
		case w.unpark <- struct{}{}:
		default: // it has been called already
		}
	}
}

// notePolling says that a program runs the engine in its own thread.
func (w *worker) notePolling() {
	if !w.polling.Load() { // a store would take the cache line from other cores each time
		w.polling.Store(true)
	}
}

// manyKicks is the number of kicks, without a wait in between, after which a program is taken to
// run the engine by posting alone. The worker is then parked. If it slept instead, it would watch
// the sockets, and that costs the kernel time for each frame, also for each sent one.
const manyKicks = 16

// noteKick counts a post that ran a round.
func (w *worker) noteKick() {
	if w.is(workerAsleep) && w.waiters.Load() == 0 && w.kicks.Add(1) == manyKicks {
		w.call()
	}
}

// notNeeded reports whether a program has run the engine since the worker last checked and no
// program waits for a completion: a program that waits may need the worker to receive frames.
func (w *worker) notNeeded() bool {
	return w.polling.Load() && w.polling.Swap(false) && w.waiters.Load() == 0
}

// Start starts the worker.
func (e *Engine) Start() {
	e.worker.started = true
	go e.work()
}

// manyRounds is the number of rounds with work, without a sleep in between, after which the worker
// does not let the kernel watch the sockets any more.
const manyRounds = 2

func (e *Engine) work() {
	w := &e.worker
	defer close(w.done)
	debug.SetPanicOnFault(true) // memory that a program shares can turn out not to be there; see contain
	lastWork, busy := time.Now(), 0
	for !w.stop.Load() {
		if w.notNeeded() {
			e.rest(workerParked)
			lastWork = time.Now()
			continue
		}
		if worked, _ := e.workOnce(); worked {
			w.found()
			if busy++; busy == manyRounds {
				w.sleeper.ignore()
			}
			if busy%callRounds == 0 && w.sleeper.callers.there.Load() {
				w.sleeper.look(0)
			}
			lastWork = time.Now()
			continue
		}
		if !w.sleeper.alone {
			runtime.Gosched() // let a goroutine run that a completion has woken
		}
		if !w.looksOn(lastWork) || e.some.Load() { // who puts events off is in no hurry
			busy = 0
			e.rest(workerAsleep)
			if w.kicks.Swap(0) < manyKicks {
				w.polling.Store(false) // a program that polled meanwhile may have stopped long ago
			}
			lastWork = time.Now()
			w.yieldSometimes(lastWork)
		}
	}
}

// yieldGap is how often a worker that sleeps in its thread yields. If it did not for 10 ms, the runtime's
// monitor would wake every 20 µs, and take its P away while it sleeps.
const yieldGap = 5 * time.Millisecond

func (w *worker) yieldSometimes(now time.Time) {
	if w.sleeper.alone && now.Sub(w.yielded) >= yieldGap {
		w.yielded = now
		runtime.Gosched()
	}
}

// looksOn says whether the worker looks for work once more before it sleeps. Programs of other processes may
// need the processor that it spins on, so there it spins only where that has found work.
func (w *worker) looksOn(lastWork time.Time) bool {
	switch {
	case !w.sleeper.alone:
		return time.Since(lastWork) < w.spin
	case !w.spinning:
		w.spinning = w.spin > 0 && w.tries.begin()
	case !w.tries.goesOn(w.spin):
		w.spinning = false
		w.tries.end(false, w.spin)
	}
	return w.spinning
}

// found notes that the worker has found work.
func (w *worker) found() {
	if w.spinning {
		w.spinning = false
		w.tries.end(true, w.spin)
	}
}

// workOnce runs a round. Calls of Do that wait for the lease go first.
func (e *Engine) workOnce() (worked, more bool) {
	for tries := 0; tries < 100 && e.wanted.Load() != 0; tries++ {
		runtime.Gosched()
	}
	e.lease.Lock()
	worked, more, _ = e.runHeld()
	return worked, more
}

// rest announces that the worker stops looking for work, runs a last round, and waits as doing
// says. It does not sleep if the last round found work.
func (e *Engine) rest(doing uint32) {
	w := &e.worker
	w.doing.Store(doing)
	e.rests.Store(true)
	e.link.SetAsleep(doing == workerAsleep)
	worked, more := e.lastLook(doing)
	switch {
	case w.stop.Load():
	case doing == workerParked:
		w.sleeper.ignore()
		w.park()
		w.sleeper.look(0) // for calls
	case worked:
	case more:
		w.sleeper.sleep(retryTime)
	default:
		w.sleeper.sleep(0)
	}
	w.doing.Store(workerBusy)
	e.rests.Store(false)
	e.link.SetAsleep(false)
}

// lastLook runs the last round before a rest. Before parking it does so only if there is a post
// whose program did not call, and if nobody else holds the lease: programs run the rounds then.
func (e *Engine) lastLook(doing uint32) (worked, more bool) {
	if doing == workerParked {
		if !e.lease.TryLock() {
			return false, false
		}
		defer e.lease.Unlock()
		e.announceRest()
		if !e.pending() {
			return false, false
		}
		return e.runRound(), e.more()
	}
	return e.workOnce()
}

// park waits for a call, at most for retryTime. It does not wait if a program waits for a
// completion.
func (w *worker) park() {
	if w.waiters.Load() != 0 {
		return
	}
	timer := time.NewTimer(retryTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.unpark:
	}
}

// Wake makes the worker look at a session's doorbell. Any goroutine may call it at any time.
func (e *Engine) Wake(s *Session) {
	e.call(s)
	e.worker.call()
}

// Close stops the worker and closes the link. Requests that were posted and not sent are lost; see
// Settle. Afterwards Progress does nothing, and Do runs its change without a round.
func (e *Engine) Close() error {
	w := &e.worker
	w.stop.Store(true)
	if w.started {
		w.call()
		<-w.done
	}
	w.sleeper.close()
	e.lease.Lock()
	defer e.lease.Unlock()
	e.closed = true
	e.alarm.close()
	return e.link.Close()
}
