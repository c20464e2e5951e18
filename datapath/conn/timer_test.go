// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"testing"
	"time"
)

// A time without packets in flight is not measured as a response time.
func TestPauseIsNoTrip(t *testing.T) {
	var r Requester
	now := time.Now()
	r.oldest, r.newest = 6, 10
	r.timeTrips(now) // measures the next packet to leave
	r.oldest = 10
	r.timeTrips(now.Add(time.Millisecond))
	now = now.Add(10 * time.Second)
	r.trip.begin(10, now)
	r.oldest, r.newest = 11, 11
	if r.timeTrips(now.Add(time.Millisecond)); r.smooth != time.Millisecond {
		t.Errorf("measured a response time of %v", r.smooth)
	}
}
