package server

import (
	"log/slog"
	"sync"
	"time"
)

// complaints limits what the log says of clients: a line a party and minute, which says how many more there
// would have been. A client could fill the log otherwise, so that the lines of others are dropped.
type complaints struct {
	mu   sync.Mutex
	last map[int64]complaint // by party
}

type complaint struct {
	said time.Time
	more int // since then
}

const (
	complaintGap   = time.Minute
	mostComplaints = 1000 // parties that are told apart
	nobody         = -1   // in place of a party: for what is nobody's, and for those beyond that number
)

// complain logs an error that clients can cause.
func (s *Server) complain(log *slog.Logger, party int64, what string, err error) {
	if more, may := s.complaints.note(party, time.Now()); may {
		log.Warn(what, "error", err, "more_since_the_last", more)
	}
}

// note counts a complaint, and says whether it may be logged, and how many were not.
func (c *complaints) note(party int64, now time.Time) (more int, may bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[int64]complaint{}
	}
	one, known := c.last[party]
	if !known && len(c.last) >= mostComplaints {
		c.forget(now)
		if len(c.last) >= mostComplaints {
			party = nobody
			one, known = c.last[party]
		}
	}
	if known && now.Sub(one.said) < complaintGap {
		one.more++
		c.last[party] = one
		return 0, false
	}
	c.last[party] = complaint{said: now}
	return one.more, true
}

// forget forgets those of whom nothing is to be said.
func (c *complaints) forget(now time.Time) {
	for party, one := range c.last {
		if now.Sub(one.said) >= complaintGap {
			delete(c.last, party)
		}
	}
}
