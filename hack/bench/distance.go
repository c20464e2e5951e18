// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// distanceTurns is how often a word goes there and back in one measurement, about 10 ms.
const distanceTurns = 50_000

// coreDistance returns the time that a word takes from one core to another and back, in ns: one
// writes it, the other reads it. On a virtual machine it changes when the host moves the processors:
// about 70 between two hyperthreads of one core, 100 within a cache, 450 between two caches.
func coreDistance() float64 {
	var word atomic.Uint32 // odd: it is the other one's turn
	ready := make(chan struct{})
	go func() {
		onProcessor(1)
		close(ready)
		for turn := uint32(1); turn < 2*distanceTurns; turn += 2 {
			await(&word, turn)
			word.Store(turn + 1)
		}
	}()
	<-ready
	done := make(chan time.Duration)
	go func() {
		onProcessor(0)
		start := time.Now()
		for turn := uint32(1); turn < 2*distanceTurns; turn += 2 {
			word.Store(turn)
			await(&word, turn+1)
		}
		done <- time.Since(start)
	}()
	return float64((<-done).Nanoseconds()) / distanceTurns
}

// await spins, and yields now and then in case that both are on one processor.
func await(word *atomic.Uint32, value uint32) {
	for tries := 1; word.Load() != value; tries++ {
		if tries%100_000 == 0 {
			runtime.Gosched()
		}
	}
}

// onProcessor binds the goroutine to a thread on one of the processors that it may use, for its life:
// the thread ends with it.
func onProcessor(which int) {
	runtime.LockOSThread()
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return
	}
	var processors []int
	for i := 0; len(processors) < may.Count(); i++ {
		if may.IsSet(i) {
			processors = append(processors, i)
		}
	}
	var one unix.CPUSet
	one.Set(processors[which%len(processors)])
	_ = unix.SchedSetaffinity(0, &one)
}
