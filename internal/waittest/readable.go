// SPDX-License-Identifier: Apache-2.0

package waittest

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Readable waits until a descriptor is readable, or for a time limit, and reports whether it is. Signals,
// which the runtime sends, do not end the wait.
func Readable(t testing.TB, fd int, within time.Duration) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		switch n, err := unix.Poll(fds, int(within.Milliseconds())); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			t.Fatal(err)
		default:
			return n == 1
		}
	}
}
