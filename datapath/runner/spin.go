// SPDX-License-Identifier: Apache-2.0

package runner

import "time"

// spin decides whether the leader polls for frames for a while before it sleeps. If the response arrives at once, that
// saves the wake-up, which takes longer; otherwise it only uses the processor. So after misses spinning is tried less
// often.
//
// If both peers sleep, a response takes as long as waking them; if both spin, it arrives at once. To reach that state,
// a try lasts twice the time that pays off, and a try with a late hit is repeated for as many waits as the peer has
// between two tries.
type spin struct {
	misses int // consecutive misses
	late   int // consecutive hits that took longer than pays off
	skip   int // waits until the next try
	looks  int // polls of the current try
	since  time.Time
}

// shortestLook is a lower bound for the duration of a poll.
const shortestLook = 20 * time.Nanosecond

// mostLooks bounds the number of polls in a time. In a testing/synctest bubble the time does not advance while a
// goroutine runs.
func mostLooks(spin time.Duration) int { return int(spin / shortestLook) }

const (
	mostMisses = 6               // after that many, one wait in 64 is a try
	mostLate   = 1 << mostMisses // the peer has tried by then
	latePause  = 16 * mostLate   // waits
)

// begin begins to spin; false if this wait is not a try.
func (s *spin) begin() bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	s.looks, s.since = 0, time.Now()
	return true
}

// goesOn reports whether to poll once more. Spinning pays off for at most the time most.
func (s *spin) goesOn(most time.Duration) bool {
	s.looks++
	return s.looks < mostLooks(2*most) && time.Since(s.since) < 2*most
}

func (s *spin) end(hit bool, most time.Duration) {
	switch {
	case !hit:
		s.misses = min(s.misses+1, mostMisses)
		s.skip, s.late = 1<<s.misses, 0
	case time.Since(s.since) <= most:
		s.misses, s.late = 0, 0
	default:
		if s.late++; s.late > mostLate {
			s.skip, s.late = latePause, 0
		}
	}
}
