// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync/atomic"
	"time"
)

// sleeper is the mechanism on which the worker and the leader sleep. It decides which of them a frame wakes. While the
// worker sleeps, one of these holds: there is a leader; a frame wakes the worker; or the grace is running, and one of
// the others holds after it.
//
//	descriptors   the link has descriptors, or other processes call (descriptors.go, watch.go)
//	signals       frames come from goroutines of this process (signals.go)
type sleeper interface {
	// sleep is called by the worker. It returns after a frame without a leader, after a call or wake, or after the
	// timeout; 0 means none. The caller polls for work after any return.
	sleep(timeout time.Duration)
	// wake ends the worker's current sleep, or the next one. Any goroutine may call it, even after close.
	wake()
	// arrived reports that a frame has arrived; for links without descriptors.
	arrived()
	// lead is called by the leader. It calls rounds, and again whenever a frame has arrived, until rounds returns true.
	// It returns again = true after wakeLeader, and else false.
	lead(rounds func(uintptr) (over bool)) (again bool)
	wakeLeader()

	// attend makes frames wake the worker, unless there is a leader.
	attend()
	// takeOver makes the caller the leader: a frame wakes it instead of the worker.
	takeOver()
	// handOver ends takeOver. A frame wakes the worker from now on or, if leaders change quickly and no other goroutine
	// waits, after the grace. hurry reports that the alarm will expire, which is not a frame.
	handOver(waiters *atomic.Int32, hurry bool)
	// leave mutes frames until the grace has ended. A program that always finds a completion when it is about to wait
	// is busy, and needs no wake-up.
	leave(waiters *atomic.Int32)
	// ignore mutes frames until attend or takeOver: programs, or the worker, poll continuously.
	ignore()

	// sleepOn replaces the descriptors. Sleepers are woken by the new ones from then on.
	sleepOn(list []int)
	// hearCalls, endCalls: see Runner.HearCalls. takeCalls handles pending calls, if the sleeper has any.
	hearCalls(fd int, called func()) error
	endCalls(fd int)
	takeCalls()
	// close ends the leader's sleep. The worker has ended.
	close()
}
