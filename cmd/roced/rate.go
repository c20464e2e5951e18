package main

import "time"

// perSecond is a rate; 0 when no time has passed.
func perSecond(n uint64, elapsed time.Duration) uint64 {
	if elapsed <= 0 {
		return 0
	}
	return uint64(float64(n) / elapsed.Seconds())
}
