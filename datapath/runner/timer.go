// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// timer wakes a sleeper once, some time after set.
type timer interface {
	set(after time.Duration) // replaces an earlier time
	stop()                   // also clears an expiry that has not been handled
	close()
}

// kernelTimer is a timer that makes a descriptor readable (timerfd_create(2)), for sleepers that wait for descriptors.
// For these, a timer of the Go runtime would wake a second thread.
type kernelTimer struct{ fd int }

func newKernelTimer() (kernelTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return kernelTimer{-1}, fmt.Errorf("timer: %w", err)
	}
	return kernelTimer{fd}, nil
}

func (t kernelTimer) set(after time.Duration) {
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(max(after.Nanoseconds(), 1))}
	_ = unix.TimerfdSettime(t.fd, 0, &value, nil)
}

func (t kernelTimer) stop() { _ = unix.TimerfdSettime(t.fd, 0, &unix.ItimerSpec{}, nil) }

func (t kernelTimer) close() {
	if t.fd >= 0 {
		_ = unix.Close(t.fd)
	}
}

// runtimeTimer is a timer of the Go runtime, which calls a function.
type runtimeTimer struct{ *time.Timer }

func newRuntimeTimer(call func()) runtimeTimer {
	t := time.AfterFunc(math.MaxInt64, call)
	t.Stop()
	return runtimeTimer{t}
}

func (t runtimeTimer) set(after time.Duration) { t.Reset(after) }
func (t runtimeTimer) stop()                   { t.Stop() }
func (t runtimeTimer) close()                  { t.Stop() }
