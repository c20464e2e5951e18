package host

import "time"

// quietPause is the least time between two looks.
const quietPause = time.Millisecond

// RetryPauses are the pauses before the first and further retries of a look that failed. The last
// one repeats.
var RetryPauses = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second}

// Pace looks, and then lets changes gather for at least a millisecond, and for as long as the look
// took: a host with many changes keeps at most half a processor busy. The time before the look
// does not count. Pace returns false when stop is closed.
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
