// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync/atomic"
	"time"
)

// sleeper is the mechanism on which the worker and the leader sleep. It decides which of them a frame wakes. While the
// worker sleeps, one of these conditions holds: there is a leader; or a frame wakes the worker; or a grace period is in
// progress (grace.go), after which one of the other conditions holds.
//
//	descriptors   the link has descriptors, or other processes call (descriptors.go, watch.go)
//	signals       frames come from goroutines of this process (signals.go)
type sleeper interface {
	// sleep is called by the worker. It returns when a frame arrives and there is no leader, after a call or wake, or
	// after the timeout; 0 means no timeout. It may also return without a reason: the caller then polls for work.
	sleep(timeout time.Duration)
	// wake ends the worker's current sleep, or the next one. Any goroutine may call it, even after close.
	wake()
	// arrived is called when a frame has arrived on a link without descriptors.
	arrived()
	// lead is called by the leader. It calls rounds at once and whenever a frame has arrived, until rounds returns
	// true. It then returns false. It may return true after wakeLeader: the caller must then call it again.
	lead(rounds func(uintptr) (over bool)) (again bool)
	// wakeLeader makes lead call rounds, or return true.
	wakeLeader()

	// attend makes frames wake the worker, unless there is a leader.
	attend()
	// takeOver makes the caller the leader: a frame wakes it instead of the worker.
	takeOver()
	// handOver ends takeOver. From now on a frame wakes the worker. If leaders change quickly and no other goroutine
	// waits, this begins only after a grace period, unless hurry is true: the alarm will expire, and must wake the
	// worker.
	handOver(waiters *atomic.Int32, hurry bool)
	// leave prevents frames from waking the worker for a grace period. A program that always finds a completion when it
	// is about to wait is saturated, and needs no wake-ups.
	leave(waiters *atomic.Int32)
	// ignore prevents frames from waking the worker until attend or takeOver, because programs or the worker poll
	// continuously.
	ignore()

	// sleepOn replaces the link's descriptors. From then on the new ones wake the worker and the leader.
	sleepOn(list []int)
	// hearCalls and endCalls implement Runner.HearCalls and Runner.EndCalls. takeCalls handles pending calls.
	hearCalls(fd int, called func()) error
	endCalls(fd int)
	takeCalls()
	// close ends the leader's sleep. The worker has ended.
	close()
}
