package conn

import (
	"testing"
	"time"
)

// The time in which nothing is on its way is not that of an answer.
func TestPauseIsNoTrip(t *testing.T) {
	var r Requester
	now := time.Now()
	r.oldest, r.newest = 6, 10
	r.timeTrips(now) // the next packet to leave is measured, if it leaves
	r.oldest = 10
	r.timeTrips(now.Add(time.Millisecond))
	now = now.Add(10 * time.Second)
	r.trip.begin(10, now)
	r.oldest, r.newest = 11, 11
	if r.timeTrips(now.Add(time.Millisecond)); r.smooth != time.Millisecond {
		t.Errorf("an answer took %v", r.smooth)
	}
}
