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

// parkTime is how long the worker leaves the engine alone after it has seen that a
// program runs it inline, and how long it waits when the link is full.
const parkTime = time.Millisecond

// worker runs the engine when nobody else does. It looks, spins for a while, and
// sleeps until a frame arrives or a program rings, so that idle costs nothing;
// while a program polls inline it is parked, and looks once a parkTime whether
// that is still so.
//
// It is a goroutine like others: not locked to a thread, and asleep in the
// runtime's own poller. A thread of its own in poll(2) was measured against that:
// each time it sleeps the runtime's monitor must take its P away, and polls for
// such chances every 20 µs, which cost a program that polls inline a tenth of its
// messages. And the goroutine that a completion wakes runs at once on
// the worker's thread when the worker steps back.
type worker struct {
	spin     time.Duration
	sleeper  *sleeper
	started  bool
	renewals atomic.Uint64 // grows with each inline burst
	kicks    atomic.Uint32 // since a program waited last
	handback chan struct{} // of capacity 1: a program stopped polling, and waits
	stop     atomic.Bool
	done     chan struct{}
}

func (w *worker) init(c WorkerConfig, descriptors []int) (err error) {
	w.spin = c.Spin
	w.done = make(chan struct{})
	w.handback = make(chan struct{}, 1)
	w.sleeper, err = newSleeper(descriptors)
	return err
}

// Start sets the worker going.
func (e *Engine) Start() {
	e.worker.started = true
	go e.work()
}

func (e *Engine) work() {
	w := &e.worker
	defer close(w.done)
	var seen uint64
	lastWork := time.Now()
	for !w.stop.Load() {
		if renewals := w.renewals.Load(); renewals != seen {
			seen = renewals
			w.park()
			continue
		}
		if e.workOnce() {
			lastWork = time.Now()
			continue
		}
		runtime.Gosched() // whoever a completion has woken goes first
		if time.Since(lastWork) >= w.spin && !e.sleep() {
			lastWork = time.Now()
		}
	}
}

// workOnce runs a burst, after whoever of the control plane wants the lease.
func (e *Engine) workOnce() bool {
	if e.wanted.Load() != 0 {
		runtime.Gosched()
	}
	e.lease.Lock()
	defer e.lease.Unlock()
	return e.runBurst()
}

// park waits a parkTime, or until the program that polled says that it waits.
func (w *worker) park() {
	timer := time.NewTimer(parkTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.handback:
	}
}

// sleep waits until something arrives or a program rings. It says that it
// sleeps, looks a last time, and only then sleeps; false if there was work.
func (e *Engine) sleep() (slept bool) {
	e.doorbell.SetAsleep(true)
	e.link.SetAsleep(true)
	defer e.link.SetAsleep(false)
	defer e.doorbell.SetAsleep(false)
	if e.workOnce() {
		return false
	}
	timeout := time.Duration(0)
	if e.blocked.Load() {
		timeout = parkTime
	}
	e.worker.sleeper.sleep(timeout)
	return true
}

// Wake makes the worker look. It may be called by anyone at any time before Close.
func (e *Engine) Wake() { e.worker.sleeper.wake() }

// Kick does for a sleeping worker what a doorbell asks for, in the caller's thread:
// quicker than waking it. The worker gets what is left. A program that kicks again
// and again without ever waiting is running the card, so the worker is woken to be
// parked: asleep it watches the sockets, which costs the kernel something for each frame.
func (e *Engine) Kick() {
	if e.wanted.Load() != 0 || !e.lease.TryLock() {
		e.Wake()
		return
	}
	e.runBurst()
	left := len(e.waiting) > 0 || e.blocked.Load()
	e.lease.Unlock()
	many := e.worker.kicks.Add(1)%manyKicks == 0
	if many {
		e.worker.renewals.Add(1)
	}
	if left || many {
		e.Wake()
	}
}

// manyKicks without a wait between them mean a program that runs the card itself.
const manyKicks = 16

// HandBack tells the worker that a program that ran bursts inline now waits.
func (e *Engine) HandBack() {
	e.worker.kicks.Store(0)
	select {
	case e.worker.handback <- struct{}{}:
	default:
	}
}

// Close stops the worker and closes the link. Progress may still be called, and does
// nothing; changes that Do is given still run, without a burst ever after.
func (e *Engine) Close() error {
	w := &e.worker
	w.stop.Store(true)
	if w.started {
		e.Wake()
		e.HandBack()
		<-w.done
	}
	w.sleeper.close()
	e.lease.Lock()
	defer e.lease.Unlock()
	e.closed = true
	return e.link.Close()
}
