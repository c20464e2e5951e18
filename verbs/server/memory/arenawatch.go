// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// A program can take pages out of its session's memory (fallocate, MADV_REMOVE). Until that has ended, the card waits
// uninterruptibly if it touches one of them. The kernel has no seal that forbids this and still lets the service free the
// pages of a session that has ended. None of roced's libraries does it, and the service itself frees pages at the end only.
// So the number of pages never decreases, unless a program has taken some out: then its session ends, and its user
// opens no session for a minute. If that happens again within the minute, all sessions of the user end.

// arenaWatch checks the arenas of all sessions.
type arenaWatch struct {
	barred barred // users that open no sessions

	mu       sync.Mutex
	sessions map[*Session]int64 // blocks of the arena at the last check
	running  bool
}

// The causes for which sessions end.
var (
	errArenaHoles     = errors.New("the program has taken pages out of its session's memory")
	errArenaHolesMore = errors.New("two programs of the user have taken pages out of their sessions' memory, within a minute")
)

// IsArenaHole reports whether a session has ended because its program, or another one of its user, has taken pages out of
// its arena.
func IsArenaHole(cause error) bool {
	return errors.Is(cause, errArenaHoles) || errors.Is(cause, errArenaHolesMore)
}

// add begins to watch the arena of a session.
func (w *arenaWatch) add(s *Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions[s] = 0
	if !w.running {
		w.running = true
		go w.run()
	}
}

func (w *arenaWatch) remove(s *Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sessions, s)
}

// run checks the arenas while there are sessions, on average every checkGap, at moments that no program can predict.
func (w *arenaWatch) run() {
	for {
		time.Sleep(checkGap/2 + rand.N(checkGap))
		shrunk, some := w.check()
		if !some {
			return
		}
		for _, s := range shrunk {
			w.end(s)
		}
	}
}

// check returns the sessions whose arenas have fewer pages than before, and whether there are sessions.
func (w *arenaWatch) check() (shrunk []*Session, some bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s, before := range w.sessions {
		blocks, err := s.arena.blocks()
		if err != nil {
			continue
		}
		w.sessions[s] = blocks
		if blocks < before {
			delete(w.sessions, s)
			shrunk = append(shrunk, s)
		}
	}
	w.running = len(w.sessions) > 0 || len(shrunk) > 0
	return shrunk, w.running
}

// end ends a session, and all of its user's if it is the second one within a minute. The connection ends after the message
// that reports this: until then the card still touches the session's memory.
func (w *arenaWatch) end(s *Session) {
	s.fail(errArenaHoles)
	if !w.barred.add(s.user.Holder, time.Now()) {
		return
	}
	for _, other := range w.of(s.user) {
		other.fail(errArenaHolesMore)
	}
}

func (w *arenaWatch) of(user User) (list []*Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.sessions {
		if s.user.Quota == user.Quota {
			list = append(list, s)
		}
	}
	return list
}
