package runner

import "time"

// spin decides whether the leader looks for frames a while before it sleeps. Where the answer comes at
// once that saves the wake-up, which takes longer; where it does not, it would only use the processor.
// So after misses it is tried less and less often.
//
// Where both peers sleep, an answer takes as long as waking them; were both to spin, it would come at
// once. So that they find each other, a try lasts twice the time that pays, and one that hits late is
// repeated for as many waits as the peer lets pass between two tries.
type spin struct {
	misses int // in a row
	late   int // hits in a row that took longer than pays
	skip   int // waits until the next try
	looks  int // of the present try
	since  time.Time
}

// shortestLook is less than a look takes.
const shortestLook = 20 * time.Nanosecond

// mostLooks bounds the looks of a time. In a bubble of testing/synctest the time stands still while a goroutine runs.
func mostLooks(spin time.Duration) int { return int(spin / shortestLook) }

const (
	mostMisses = 6               // after that many, one wait in 64 is a try
	mostLate   = 1 << mostMisses // the peer has tried by then
	latePause  = 16 * mostLate   // waits
)

// begin begins to spin; false if it is not to be tried.
func (s *spin) begin() bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	s.looks, s.since = 0, time.Now()
	return true
}

// goesOn reports whether to look once more. Spinning pays for at most that time.
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
