package datapath

import (
	"runtime"
	"sync/atomic"
	"time"
)

// WorkerConfig tells how a worker waits.
type WorkerConfig struct {
	// Spin is how long the worker looks for work before it sleeps. Zero: it sleeps
	// as soon as there is none.
	Spin time.Duration
}

// retryTime is how long the worker leaves the engine to a program that polls before it
// looks whether that is still so, and how long it waits when the link is full.
const retryTime = time.Millisecond

// What a worker does; see the package comment.
const (
	workerBusy   uint32 = iota // runs rounds: nobody need call it
	workerAsleep               // waits for a frame or a call
	workerParked               // a program runs the engine; waits for a call, or a retryTime
)

// worker runs the engine when nobody else does.
//
// It is a goroutine like others: not locked to a thread, and asleep in the
// runtime's own poller. A thread of its own in poll(2) was measured against that:
// each time it sleeps the runtime's monitor must take its P away, and polls for
// such chances every 20 µs, which cost a program that polls inline a tenth of its
// messages. And the goroutine that a completion wakes runs at once on
// the worker's thread when the worker steps back.
type worker struct {
	spin    time.Duration
	sleeper *sleeper
	started bool
	doing   atomic.Uint32 // workerBusy and so on
	polling atomic.Bool   // a program ran a round, or tried, since the worker looked last
	kicks   atomic.Uint32 // posts that ran a round while the worker slept
	waiters atomic.Int32  // programs asleep until a completion comes
	unpark  chan struct{} // of capacity 1
	stop    atomic.Bool
	done    chan struct{}
}

func (w *worker) init(c WorkerConfig, descriptors []int) (err error) {
	w.spin = c.Spin
	w.done = make(chan struct{})
	w.unpark = make(chan struct{}, 1)
	w.sleeper, err = newSleeper(descriptors)
	return err
}

func (w *worker) is(doing uint32) bool { return w.doing.Load() == doing }

// call has a worker that does not look go to work. Whoever calls has made visible
// before what there is to do.
func (w *worker) call() {
	switch w.doing.Load() {
	case workerAsleep:
		w.sleeper.wake()
	case workerParked:
		select {
		case w.unpark <- struct{}{}:
		default: // it is called already
		}
	}
}

// notePolling says that a program runs the engine in its own thread.
func (w *worker) notePolling() {
	if !w.polling.Load() { // the line stays shared while nothing changes
		w.polling.Store(true)
	}
}

// manyKicks without a wait mean a program that runs the engine by posting alone. The
// worker is parked for it, since while it sleeps it watches the sockets, which costs the
// kernel something for each frame, those that are sent among them.
const manyKicks = 16

// noteKick counts a post that ran a round.
func (w *worker) noteKick() {
	if w.is(workerAsleep) && w.waiters.Load() == 0 && w.kicks.Add(1) == manyKicks {
		w.call()
	}
}

// notNeeded reports whether a program has run the engine since the worker asked last, and
// none waits: one that waits does not look for frames.
func (w *worker) notNeeded() bool {
	return w.polling.Load() && w.polling.Swap(false) && w.waiters.Load() == 0
}

// Start sets the worker going.
func (e *Engine) Start() {
	e.worker.started = true
	go e.work()
}

func (e *Engine) work() {
	w := &e.worker
	defer close(w.done)
	lastWork := time.Now()
	for !w.stop.Load() {
		if w.notNeeded() {
			e.rest(workerParked)
			lastWork = time.Now()
			continue
		}
		if worked, _ := e.workOnce(); worked {
			lastWork = time.Now()
			continue
		}
		runtime.Gosched() // whoever a completion has woken goes first
		if time.Since(lastWork) >= w.spin {
			e.rest(workerAsleep)
			if w.kicks.Swap(0) < manyKicks {
				w.polling.Store(false) // who polled meanwhile may have stopped long ago
			}
			lastWork = time.Now()
		}
	}
}

// workOnce runs a round, after those of the control plane who want the lease.
func (e *Engine) workOnce() (worked, more bool) {
	for tries := 0; tries < 100 && e.wanted.Load() != 0; tries++ {
		runtime.Gosched()
	}
	e.lease.Lock()
	defer e.lease.Unlock()
	worked = e.runRound()
	return worked, e.more()
}

// rest says that the worker will not look, looks a last time, and waits; but not asleep
// if there was something.
func (e *Engine) rest(doing uint32) {
	w := &e.worker
	w.doing.Store(doing)
	e.tellResting(true)
	e.link.SetAsleep(doing == workerAsleep)
	worked, more := e.lastLook(doing)
	switch {
	case w.stop.Load():
	case doing == workerParked:
		w.park()
	case worked:
	case more:
		w.sleeper.sleep(retryTime)
	default:
		w.sleeper.sleep(0)
	}
	w.doing.Store(workerBusy)
	e.tellResting(false)
	e.link.SetAsleep(false)
}

// tellResting has programs call, or not, when they post.
func (e *Engine) tellResting(resting bool) {
	e.lease.Lock()
	defer e.lease.Unlock()
	e.setResting(resting)
}

// lastLook runs a round; to be parked only if there is a post that did not call, and nobody
// else runs one: the program's rounds are not to be disturbed.
func (e *Engine) lastLook(doing uint32) (worked, more bool) {
	if doing == workerParked {
		if !e.lease.TryLock() {
			return false, false
		}
		defer e.lease.Unlock()
		if !e.pending() {
			return false, false
		}
		return e.runRound(), e.more()
	}
	return e.workOnce()
}

// park waits for a retryTime, or a call, unless a program waits.
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

// Wake has the worker look at a session's doorbell. It may be called by anyone at any time.
func (e *Engine) Wake(s *Session) {
	e.call(s)
	e.worker.call()
}

// BeginWait says that a program is about to sleep until a completion comes: the worker
// runs the engine from now on, whoever else does.
func (e *Engine) BeginWait() {
	w := &e.worker
	w.waiters.Add(1)
	w.kicks.Store(0)
	if w.is(workerParked) {
		w.call()
	}
}

// EndWait ends what BeginWait began.
func (e *Engine) EndWait() { e.worker.waiters.Add(-1) }

// Close stops the worker and closes the link; what was posted and has not left is lost (see
// Settle). Progress may still be called, and does nothing; changes that Do is given still run,
// without a round ever after.
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
	return e.link.Close()
}
