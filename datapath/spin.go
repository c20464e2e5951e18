package datapath

import "time"

// spin decides whether the leader looks for frames a while before it sleeps. Where the answer comes
// at once that saves the wake-up, which takes longer; where it does not, it would only use the
// processor. So after misses it is tried less and less often.
type spin struct {
	misses int // in a row
	skip   int // waits until the next try
	since  time.Time
}

// mostMisses bounds the pause: one try in 64 waits.
const mostMisses = 6

// begin begins to spin; false if it is not to be tried.
func (s *spin) begin() bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	s.since = time.Now()
	return true
}

// goesOn reports whether to look once more.
func (s *spin) goesOn(most time.Duration) bool { return time.Since(s.since) < most }

func (s *spin) end(hit bool) {
	if hit {
		s.misses = 0
		return
	}
	s.misses = min(s.misses+1, mostMisses)
	s.skip = 1 << s.misses
}
