// SPDX-License-Identifier: Apache-2.0

package host

import "time"

// quietPause is the minimum pause between two calls.
const quietPause = time.Millisecond

// RetryPauses are the pauses before retries of a failed query. The last one repeats.
var RetryPauses = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second}

// Pace calls look and then waits for changes to accumulate, for at least a millisecond and for as long as look took, so
// that a host with many changes uses at most half a processor. Pace returns false when stop is closed.
func Pace(stop <-chan struct{}, look func()) bool {
	began := time.Now()
	look()
	select {
	case <-stop:
		return false
	case <-time.After(max(quietPause, time.Since(began))):
		return true
	}
}
