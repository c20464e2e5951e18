package datapath

// BeginWait announces that a program is about to sleep until a completion comes. From now on the
// worker or a leader runs the engine, even while other programs poll.
func (e *Engine) BeginWait() {
	w := &e.worker
	w.waiters.Add(1)
	w.kicks.Store(0)
	w.ready.Store(0)
	if w.is(workerParked) {
		w.call()
	}
}

// EndWait ends what BeginWait began.
func (e *Engine) EndWait() { e.worker.waiters.Add(-1) }

// manyReady is the number of waits in a row that need not sleep, after which a program is taken to have
// more to do than it can. See sleeper.leave.
const manyReady = 2

// NoteReady says that a program was about to wait, and a completion was there.
func (e *Engine) NoteReady() {
	w := &e.worker
	if w.kicks.Load() != 0 {
		w.kicks.Store(0)
	}
	if w.ready.Load() < manyReady && w.ready.Add(1) == manyReady && w.is(workerAsleep) {
		w.sleeper.leave(&w.waiters)
	}
}
