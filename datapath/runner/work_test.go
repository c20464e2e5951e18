// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// work implements Rounds that find writes to an eventfd, which represents the link's frames, and posts.
type work struct {
	*testing.T
	*Runner
	frames   int  // eventfd
	inMemory bool // frames are announced by Arrived
	posted   atomic.Int32
	stuck    atomic.Bool // the link does not accept posted work, so each round leaves it
	events   time.Time   // for SetAlarm
	timers   time.Time

	mu     sync.Mutex // the lease
	rounds int
	found  chan string // the goroutine that ran each round with work: the worker, the leader or the test
	rest   State
	rests  []State // the announced states, in order
	idle   bool    // the worker's last round before it sleeps has found no work
}

func newWork(t *testing.T, c Config) *work {
	t.Helper()
	w := &work{T: t, frames: newEventfd(t), inMemory: c.InMemory, found: make(chan string, 1000)}
	if !c.InMemory {
		c.Descriptors = []int{w.frames}
	}
	var err error
	if w.Runner, err = New(c, w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Close()
	})
	return w
}

func newEventfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func write(t *testing.T, fd int) {
	t.Helper()
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	if _, err := unix.Write(fd, one[:]); err != nil {
		t.Fatal(err)
	}
}

// Round implements Rounds.
func (w *work) Round() (worked, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	worked, more = w.round()
	if w.rest == Asleep && !w.idle && !worked && runs() == "worker" {
		w.idle = true
	}
	return worked, more
}

// LastRound implements Rounds.
func (w *work) LastRound() (worked, more bool) {
	if !w.mu.TryLock() {
		return false, false
	}
	defer w.mu.Unlock()
	if w.posted.Load() == 0 {
		return false, false
	}
	return w.round()
}

func (w *work) round() (worked, more bool) {
	w.rounds++
	var count [8]byte
	if _, err := unix.Read(w.frames, count[:]); err == nil {
		worked = true
	}
	if !w.stuck.Load() && w.posted.Swap(0) > 0 {
		worked = true
	}
	for _, due := range []*time.Time{&w.events, &w.timers} {
		if !due.IsZero() && !time.Now().Before(*due) {
			*due, worked = time.Time{}, true
		}
	}
	if worked {
		w.found <- runs()
	}
	w.SetAlarm(w.events, w.timers, time.Now)
	return worked, w.stuck.Load() && w.posted.Load() > 0
}

// runs returns the goroutine that runs the current round, which it determines from the stack.
func runs() string {
	stack := debug.Stack()
	switch {
	case bytes.Contains(stack, []byte("runUntilOver")):
		return "leader"
	case bytes.Contains(stack, []byte("(*Runner).work")):
		return "worker"
	}
	return "test"
}

// Rest implements Rounds.
func (w *work) Rest(s State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest, w.idle = s, false
	w.rests = append(w.rests, s)
}

// is waits for a state of the worker. A worker that has announced that it will sleep may still find work and become
// busy again.
func (w *work) is(s State) {
	w.Helper()
	w.wait("worker "+s.String(), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.State() == s && (s != Asleep || w.idle)
	})
}

// wait waits until done returns true. Its limit only ends a test that hangs.
func (w *work) wait(what string, done func() bool) {
	w.Helper()
	for start := time.Now(); !done(); {
		if time.Since(start) > waittest.Limit {
			w.Fatalf("timeout waiting for %s", what)
		}
		runtime.Gosched()
	}
}

// foundBy waits for a round that has found work, and checks which goroutine ran it.
func (w *work) foundBy(who string) {
	w.Helper()
	select {
	case got := <-w.found:
		if got != who {
			w.Errorf("the round was run by the %s, want the %s", got, who)
		}
	case <-time.After(waittest.Limit):
		w.Fatal("no round found the work")
	}
}

// poll runs a round of a program that polls.
func (w *work) poll() {
	w.Round()
	w.NotePolling()
}

// post posts as a program does. It calls if needed, and the worker runs the round.
func (w *work) post() {
	w.posted.Add(1)
	w.mu.Lock()
	rests := w.rest
	w.mu.Unlock()
	if rests != Busy {
		w.Call()
	}
}
