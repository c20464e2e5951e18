package server

import (
	"fmt"
	"sync"
	"time"
)

// pace bounds how often users connect. Who connects in a loop would take the processors' time otherwise,
// although each of the connections is short: the rest are closed unread.
type pace struct {
	mu      sync.Mutex
	due     map[int64]time.Time // by user: when the connections so far would be over, one every paceGap
	refused uint64
}

const (
	paceGap   = 4 * time.Millisecond
	paceBurst = 1000 // connections at once
	mostPaced = 1000 // users that are told apart; those beyond share a pace
)

func tooOften(who holder) error {
	return fmt.Errorf("%v connects too often: %d a second are served, after %d at once",
		who, time.Second/paceGap, paceBurst)
}

// may counts a connection of a user, and says whether it is served.
func (p *pace) may(user int64, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	due, known := p.due[user]
	if !known && len(p.due) >= mostPaced {
		p.forget(now)
		if len(p.due) >= mostPaced {
			user = nobody
			due = p.due[user]
		}
	}
	if due.Before(now) {
		due = now
	}
	if due.Sub(now) > (paceBurst-1)*paceGap {
		p.refused++
		return false
	}
	if p.due == nil {
		p.due = map[int64]time.Time{}
	}
	p.due[user] = due.Add(paceGap)
	return true
}

// forget forgets users that may have a full burst again.
func (p *pace) forget(now time.Time) {
	for user, due := range p.due {
		if !due.After(now) {
			delete(p.due, user)
		}
	}
}

// Refused is how many connections were closed unread, since their users connect too often.
func (s *Server) Refused() uint64 {
	s.pace.mu.Lock()
	defer s.pace.mu.Unlock()
	return s.pace.refused
}
