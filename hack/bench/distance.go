// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// distanceTurns is the number of round trips in one measurement, which lasts about 10 ms.
const distanceTurns = 50_000

// coreDistance returns the round-trip time of a word of memory between two cores in ns. On a virtual machine it changes
// when the host moves the virtual processors: about 70 between two hyperthreads of a core, 100 within a shared cache,
// 450 between two caches.
func coreDistance() float64 {
	var word atomic.Uint32 // odd if it is the other goroutine's turn
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

// await spins until word has a value. It yields occasionally, in case both goroutines share a processor.
func await(word *atomic.Uint32, value uint32) {
	for tries := 1; word.Load() != value; tries++ {
		if tries%100_000 == 0 {
			runtime.Gosched()
		}
	}
}

// onProcessor binds the goroutine to a thread on one of the allowed processors. The thread ends with the goroutine.
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
