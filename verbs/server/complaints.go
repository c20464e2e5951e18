package server

import (
	"log/slog"
	"sync"
	"time"
)

// complaints limits what the log says of clients: a line a user and minute, which says how many more there
// would have been. A client could fill the log otherwise, so that the lines of others are dropped.
type complaints struct {
	mu   sync.Mutex
	last map[int64]complaint // by uid
}

type complaint struct {
	said time.Time
	more int // since then
}

const (
	complaintGap   = time.Minute
	mostComplaints = 1000 // users that are told apart
	nobody         = -1   // in place of a uid: for what is no user's, and for users beyond that number
)

// complain logs an error that clients can cause.
func (s *Server) complain(log *slog.Logger, uid int64, what string, err error) {
	if more, may := s.complaints.note(uid, time.Now()); may {
		log.Warn(what, "error", err, "more_since_the_last", more)
	}
}

// note counts a complaint, and says whether it may be logged, and how many were not.
func (c *complaints) note(uid int64, now time.Time) (more int, may bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[int64]complaint{}
	}
	one, known := c.last[uid]
	if !known && len(c.last) >= mostComplaints {
		c.forget(now)
		if len(c.last) >= mostComplaints {
			uid = nobody
			one, known = c.last[uid]
		}
	}
	if known && now.Sub(one.said) < complaintGap {
		one.more++
		c.last[uid] = one
		return 0, false
	}
	c.last[uid] = complaint{said: now}
	return one.more, true
}

// forget forgets users of whom nothing is to be said.
func (c *complaints) forget(now time.Time) {
	for uid, one := range c.last {
		if now.Sub(one.said) >= complaintGap {
			delete(c.last, uid)
		}
	}
}
