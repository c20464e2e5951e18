package server

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A program can take pages out of its session's memory (fallocate, MADV_REMOVE). Meanwhile the card waits if it touches one of
// them, uninterruptibly. The kernel has no seal that forbids this and still lets the service free the pages of a session
// that has ended. No library of roced's does it, and the service itself frees pages at the end only. So the number of pages
// never decreases, unless a program has taken some out: then its connection ends, and its user opens no session for a
// minute. If that happens again within the minute, all sessions of the user end.

// arenas are the memory of all sessions.
type arenas struct {
	mu      sync.Mutex
	all     map[*connection]struct{}
	watched bool
}

// Why sessions end.
var (
	errArenaHoles     = errors.New("the program has taken pages out of its session's memory")
	errArenaHolesMore = errors.New("two programs of the user have taken pages out of their sessions' memory, within a minute")
)

// enter begins to watch the memory of a session.
func (a *arenas) enter(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[*connection]struct{}{}
	}
	a.all[c] = struct{}{}
	if !a.watched {
		a.watched = true
		go a.watch()
	}
}

func (a *arenas) leave(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, c)
}

// watch checks the memory of sessions while there are some, fileLook apart on average. A program cannot predict when.
func (a *arenas) watch() {
	for {
		time.Sleep(fileLook/2 + rand.N(fileLook))
		shrunk, some := a.check()
		if !some {
			return
		}
		for _, c := range shrunk {
			a.end(c)
		}
	}
}

// check returns the sessions whose memory has fewer pages than before, and whether there are sessions.
func (a *arenas) check() (shrunk []*connection, some bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.all {
		if c.arena.hasShrunk() {
			delete(a.all, c)
			shrunk = append(shrunk, c)
		}
	}
	a.watched = len(a.all) > 0 || len(shrunk) > 0
	return shrunk, a.watched
}

// end ends a session, and all of its user's if it is the second one within a minute.
func (a *arenas) end(c *connection) {
	a.fail(c, errArenaHoles)
	if !c.server.shut.add(c.peer.holder(), time.Now()) {
		return
	}
	for _, other := range a.of(c.account) {
		a.fail(other, errArenaHolesMore)
	}
}

func (a *arenas) of(user *account) (list []*connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.all {
		if c.account == user {
			list = append(list, c)
		}
	}
	return list
}

// fail ends a session. Its connection ends after the message that says so (connection.watch): until then the card still
// touches the session's memory.
func (a *arenas) fail(c *connection, cause error) {
	c.server.complain(c.log, c.peer.party(), "a program's session has ended", cause)
	c.session.Fail(cause)
}

// isArenaHole reports whether a session has ended because its program has taken pages out of its memory.
func isArenaHole(cause error) bool {
	return errors.Is(cause, errArenaHoles) || errors.Is(cause, errArenaHolesMore)
}

// hasShrunk reports whether the arena has fewer pages than at an earlier call. arenas calls it, under its lock.
func (a *arena) hasShrunk() bool {
	var s unix.Stat_t
	if unix.Fstat(a.fd, &s) != nil {
		return false
	}
	shrunk := s.Blocks < a.blocks
	a.blocks = s.Blocks
	return shrunk
}
