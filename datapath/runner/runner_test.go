// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"github.com/roced/roced/internal/waittest"
	"slices"
	"testing"
	"time"
)

// spinTime is long enough for a woken worker to detect a polling program on a single processor.
const spinTime = 50 * time.Microsecond

// TestStates: in each state of the worker, an event, the goroutine that runs its round, and the next state.
func TestStates(t *testing.T) {
	for _, row := range []struct {
		name  string
		alone bool
		run   func(w *work)
	}{
		{"no work", false, func(w *work) { w.is(Asleep) }},
		{"a frame", false, func(w *work) { w.frameFor("worker") }},
		{"a frame, alone", true, func(w *work) { w.frameFor("worker") }},
		{"a call", false, func(w *work) { w.postFor("worker") }},
		{"a call, alone", true, func(w *work) { w.postFor("worker") }},
		{"a call of another process", false, heard},
		{"a call of another process, alone", true, heard},
		{"a timer", false, func(w *work) { w.alarmFor(&w.timers) }},
		{"a delayed event", false, func(w *work) { w.alarmFor(&w.events) }},
		{"a timer, alone", true, func(w *work) { w.alarmFor(&w.timers) }},
		{"work that the link does not accept", false, stuck},
		{"frames that no round receives, without further rounds", false, ended},
		{"a program polls", false, polled},
		{"a program polls, and another waits", false, polledAndWaited},
		{"a program posts repeatedly", false, kicked},
		{"a program posts repeatedly, and another waits", false, kickedAndWaited},
		{"old polls", false, polledLongAgo},
		{"a program waits", false, led},
		{"a program waits, and its wait ends", false, over},
		{"two programs wait", false, twoWait},
		{"a leader has left", false, left},
		{"completions are always present", false, alwaysReady},
		{"other descriptors", false, replaced},
		{"other descriptors for a leader", false, replacedForLeader},
	} {
		for _, inMemory := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in memory: %t", row.name, inMemory), func(t *testing.T) {
				t.Parallel()
				w := newWork(t, Config{Alone: row.alone, Spin: spinTime, InMemory: inMemory})
				w.Start()
				w.is(Asleep)
				row.run(w)
				if w.worker.stop.Load() {
					return
				}
				w.is(Asleep)
				w.postFor("worker") // it is still working
			})
		}
	}
}

// frame writes a frame.
func (w *work) frame() {
	w.Helper()
	write(w.T, w.frames)
	if w.inMemory {
		w.Arrived()
	}
}

func (w *work) frameFor(who string) {
	w.Helper()
	w.frame()
	w.foundBy(who)
}

func (w *work) postFor(who string) {
	w.Helper()
	w.post()
	w.foundBy(who)
}

func (w *work) alarmFor(due *time.Time) {
	w.mu.Lock()
	*due = time.Now().Add(time.Millisecond)
	w.SetAlarm(w.events, w.timers, time.Now)
	w.mu.Unlock()
	w.foundBy("worker")
}

// heard checks that each write wakes the worker and counts as a call, until EndCalls.
func heard(w *work) {
	fd := newEventfd(w.T)
	if err := w.HearCalls(fd, func() { w.posted.Add(1) }); err != nil {
		w.Fatal(err)
	}
	for range 3 {
		write(w.T, fd)
		w.foundBy("worker")
		w.is(Asleep)
	}
	w.EndCalls(fd)
	write(w.T, fd)
	w.postFor("worker")
	if len(w.found) != 0 || w.posted.Load() != 0 {
		w.Error("got a call after EndCalls")
	}
}

func stuck(w *work) {
	w.stuck.Store(true)
	w.post()
	w.wait("tries", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.rounds > 10
	})
	w.stuck.Store(false)
	w.foundBy("worker")
}

// ended checks that the worker does not run after End, although frames remain that no round receives.
func ended(w *work) {
	w.End()
	w.frame()
	select {
	case <-w.worker.done:
	case <-time.After(waittest.Limit):
		w.Fatal("the worker keeps running")
	}
}

// park makes the worker park.
func (w *work) park() {
	w.Helper()
	w.wait("parked worker", func() bool {
		if w.State() == Asleep {
			w.Call()
		}
		w.poll()
		return w.State() == Parked
	})
}

// polled checks that a parked worker becomes busy again after some time, and immediately when it is called.
func polled(w *work) {
	w.park()
	w.is(Asleep)
	w.park()
	w.postFor("worker")
}

func polledAndWaited(w *work) {
	w.park()
	w.BeginWait()
	defer w.EndWait()
	w.is(Asleep)
	w.mu.Lock()
	w.rests = nil
	w.mu.Unlock()
	for range 100 {
		w.poll()
		w.Call()
	}
	w.is(Asleep)
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.rests, Parked) {
		w.Error("parked while a program waits")
	}
}

// kick posts and runs the round in the caller's thread.
func (w *work) kick() {
	w.Helper()
	w.posted.Add(1)
	w.poll()
	w.NoteKick()
}

func kicked(w *work) {
	w.wait("parked worker", func() bool {
		w.kick()
		<-w.found
		return w.State() == Parked
	})
}

func kickedAndWaited(w *work) {
	w.BeginWait()
	defer w.EndWait()
	for range 4 * manyKicks {
		w.kick()
		w.foundBy("test")
		if w.State() != Asleep {
			w.Fatalf("the worker is %v while a program waits", w.State())
		}
	}
}

// polledLongAgo checks that a worker that a frame has woken does not park for a program that polled before the worker
// slept.
func polledLongAgo(w *work) {
	w.poll()
	w.frameFor("worker")
	w.wait("sleep", func() bool { return w.State() == Asleep && !w.worker.polling.Load() })
	w.mu.Lock()
	w.rests = nil
	w.mu.Unlock()
	w.frameFor("worker")
	w.is(Asleep)
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.rests, Parked) {
		w.Error("parked for old polls")
	}
}

// lead waits as a program does, until a round has found work.
func (w *work) lead(ctx context.Context) (result chan bool) {
	result = make(chan bool, 1)
	events := make(chan struct{}, 1)
	go func() {
		w.BeginWait()
		over := w.Lead(Waiter{Context: ctx, Events: events})
		w.EndWait() // before another program waits: if two wait, neither is the leader
		result <- over
	}()
	w.wait("leader that sleeps", func() bool { return w.LeaderSleeps() })
	return result
}

func led(w *work) {
	ctx, cancel := context.WithCancel(w.Context())
	result := w.lead(ctx)
	for range 100 {
		w.frame()
		<-w.found
	}
	if w.State() != Asleep {
		w.Errorf("the worker is %v while a program leads", w.State())
	}
	w.frameFor("leader")
	cancel()
	if !<-result {
		w.Error("the program did not lead")
	}
	w.frameFor("worker")
}

// over checks that a leader's wait ends with its context, with an event, or when one of its channels is closed.
func over(w *work) {
	closed, events := make(chan struct{}), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(w.Context())
	for _, row := range []struct {
		waiter Waiter
		end    func()
	}{
		{Waiter{Context: ctx}, cancel},
		{Waiter{Context: w.Context(), Events: events}, func() { events <- struct{}{} }},
		{Waiter{Context: w.Context(), Closed: closed}, func() { close(closed) }},
		{Waiter{Context: w.Context(), Done: closed}, func() {}},
	} {
		w.is(Asleep)
		ended := make(chan bool)
		w.BeginWait()
		go func() { ended <- w.Lead(row.waiter) }()
		if row.waiter.Done == nil { // otherwise the leader may not sleep at all
			w.wait("leader that sleeps", w.LeaderSleeps)
		}
		row.end()
		w.WakeLeader()
		if !<-ended {
			w.Error("the program did not lead")
		}
		w.EndWait()
	}
}

func twoWait(w *work) {
	w.BeginWait() // a program that already sleeps
	defer w.EndWait()
	w.BeginWait()
	defer w.EndWait()
	if w.Lead(Waiter{Context: w.Context()}) {
		w.Error("one of two waiters leads")
	}
	w.frameFor("worker")
}

// left checks that frames wake the worker after a leader has stopped waiting, also after many short waits, then at the
// end of the grace period.
func left(w *work) {
	for _, times := range []int{1, 2, 50} {
		for range times {
			ctx, cancel := context.WithCancel(w.Context())
			result := w.lead(ctx)
			cancel()
			<-result
		}
		for range 3 {
			w.frameFor("worker")
			w.is(Asleep)
		}
	}
}

// alwaysReady checks that frames do not wake the worker while a program never needs to sleep, and that the worker finds
// them when the program stops waiting.
func alwaysReady(w *work) {
	for range 20 {
		w.is(Asleep)
		w.BeginWait() // resets the number of ready waits
		w.EndWait()
		for range manyReady {
			w.NoteReady()
		}
		w.frameFor("worker")
	}
	w.wait("the end of the grace", func() bool {
		switch s := w.sleeper.(type) {
		case *descriptors:
			s.mu.Lock()
			defer s.mu.Unlock()
			return !s.grace.running && s.watched && !s.muted
		case *signals:
			s.mu.Lock()
			defer s.mu.Unlock()
			return !s.grace.running && s.watched
		}
		return false
	})
}

func replaced(w *work) {
	old := w.frames
	w.replace()
	write(w.T, old)
	w.frameFor("worker")
}

func replacedForLeader(w *work) {
	ctx, cancel := context.WithCancel(w.Context())
	result := w.lead(ctx)
	w.replace()
	w.frameFor("leader")
	cancel()
	<-result
}

func (w *work) replace() {
	fd := newEventfd(w.T)
	w.Cleanup(w.Stop) // before the descriptor is closed: other tests may get the same number
	w.mu.Lock()
	w.frames = fd
	w.mu.Unlock()
	w.SleepOn([]int{fd})
}

// TestStop: a runner ends in each state, and later calls do nothing.
func TestStop(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(w *work)
	}{
		{"not started", func(*work) {}},
		{"at once", func(w *work) { w.Start() }},
		{"asleep", func(w *work) { w.Start(); w.is(Asleep) }},
		{"parked", func(w *work) { w.Start(); w.is(Asleep); w.Runner.NotePolling(); w.Call() }},
	} {
		for _, c := range []Config{{}, {Alone: true}, {InMemory: true}} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				c.Spin = 10 * time.Microsecond
				w := newWork(t, c)
				row.before(w)
				w.Stop()
				w.Call()
				w.SleepOn(nil)
				w.NoteKick()
				if err := w.HearCalls(w.frames, func() {}); err != nil {
					t.Error(err)
				}
				for range 2 {
					w.BeginWait()
					if w.Lead(Waiter{Context: t.Context()}) {
						t.Error("a stopped runner has a leader")
					}
					w.EndWait()
				}
			})
		}
	}
}
