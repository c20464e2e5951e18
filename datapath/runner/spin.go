// SPDX-License-Identifier: Apache-2.0

package runner

import "time"

// spin decides whether the leader, or a worker that is alone, polls for frames for some time before it sleeps. If a
// frame arrives during this time (a hit), spinning saves a wake-up, which takes longer; otherwise (a miss) it only uses
// the processor. After misses spinning is therefore tried less often.
//
// If both peers sleep, a response takes as long as waking them; if both spin, it arrives immediately. To reach the
// latter state, a try lasts twice the time for which spinning is worthwhile, and a try with a late hit is repeated for
// as many waits as the peer has between two tries.
type spin struct {
	misses int       // number of consecutive misses
	late   int       // number of consecutive hits after the time for which spinning is worthwhile
	skip   int       // number of waits until the next try
	looks  int       // number of polls of the current try
	since  time.Time // start of the current try
}

// shortestLook is a lower bound for the duration of a poll.
const shortestLook = 20 * time.Nanosecond

// mostLooks returns the maximum number of polls in a time. It ends spinning in a testing/synctest bubble, where time
// does not advance while a goroutine runs.
func mostLooks(spin time.Duration) int { return int(spin / shortestLook) }

const (
	mostMisses = 6               // maximum of misses: one wait in 64 is then a try
	mostLate   = 1 << mostMisses // maximum number of consecutive late hits; the peer has had a try by then
	latePause  = 16 * mostLate   // number of waits until the next try after too many late hits
)

// begin begins a try. It returns false if this wait is not a try.
func (s *spin) begin() bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	s.looks, s.since = 0, time.Now()
	return true
}

// goesOn reports whether to poll once more. most is the time for which spinning is worthwhile.
func (s *spin) goesOn(most time.Duration) bool {
	s.looks++
	return s.looks < mostLooks(2*most) && time.Since(s.since) < 2*most
}

// end ends a try and sets the number of waits until the next one.
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
