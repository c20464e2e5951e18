package runner

import (
	"sync/atomic"
	"time"
)

// sleeper is what the worker and the leader sleep on, and decides whom a frame wakes. While the worker sleeps, one of
// these holds: a leader is there; a frame wakes the worker; or the grace runs, at the end of which one of the others
// holds.
//
//	descriptors   the link has descriptors, or other processes call (descriptors.go, watch.go)
//	signals       frames come from goroutines of this process (signals.go)
type sleeper interface {
	// sleep is the worker's. It returns when a frame has come and no leader is there, after a call or wake, or
	// after the timeout; 0 means none. The caller looks for work after any return.
	sleep(timeout time.Duration)
	// wake ends the worker's present sleep, or the next one. Any goroutine may call it, also after close.
	wake()
	// arrived says that a frame has come; for links without descriptors.
	arrived()
	// lead is the leader's: it calls rounds, and again whenever a frame has come, until rounds returns true.
	// It returns again = true after wakeLeader, and else false.
	lead(rounds func(uintptr) (over bool)) (again bool)
	wakeLeader()

	// attend makes a frame wake somebody: the worker, unless a leader is there.
	attend()
	// takeOver makes the caller the leader: a frame wakes it, and not the worker.
	takeOver()
	// handOver ends that. A frame wakes the worker from now on, or, if leaders come and go quickly and no other
	// goroutine waits, after the grace. The alarm is no frame: hurry reports that it will ring.
	handOver(waiters *atomic.Int32, hurry bool)
	// leave mutes frames until the grace has ended. A program that always finds a completion when it wants to wait is
	// busy, and needs no wake-up.
	leave(waiters *atomic.Int32)
	// ignore mutes frames until attend or takeOver: programs, or the worker, poll all the time.
	ignore()

	// sleepOn replaces the descriptors. Who sleeps is woken by the new ones from then on.
	sleepOn(list []int)
	// hearCalls, endCalls: see Runner.HearCalls. takeCalls takes the calls that have come, if any can.
	hearCalls(fd int, called func()) error
	endCalls(fd int)
	takeCalls()
	// close ends the leader's sleep. The worker has ended.
	close()
}
