// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// Session is the memory of one session: its arena, its process file, and the files that its program has passed.
// One goroutine uses it; Mapping's and PassedMapping's functions may be called by any.
type Session struct {
	manager *Manager
	user    User
	arena   *Arena
	session *hca.Session // from Watch on
	file    *file        // the process file; nil until there is one

	over     chan struct{} // closed by Stop
	watchers sync.WaitGroup

	passed map[*file]bool // files of which it has registered parts, also when these are deregistered; under files.mu
}

// Arena returns the arena.
func (s *Session) Arena() *Arena { return s.arena }

// Watch begins to watch the memory: a program that takes pages out of it loses its session.
func (s *Session) Watch(session *hca.Session) {
	s.session = session
	s.manager.arenas.add(s)
}

// Stop ends the watching of the process file and of files that were passed. It does not wait.
func (s *Session) Stop() { close(s.over) }

// Leave ends the watching of the arena, and waits for what Stop has ended. The session has been closed.
func (s *Session) Leave() {
	s.watchers.Wait()
	s.manager.arenas.remove(s)
}

// Close releases the memory, and ends its charge. The session has been closed. With remove the pages of the arena
// return to the kernel even if the client keeps them mapped. The client can make Close block.
func (s *Session) Close(remove bool) {
	if s.file != nil {
		s.manager.files.leave(s.file)
	}
	s.arena.close(remove)
}

// fail ends the session, and logs why.
func (s *Session) fail(cause error) {
	s.manager.log.Warn(s.user.Log, s.user.Holder, "a program's session has ended", cause)
	s.session.Fail(cause)
}

// HasFile reports whether the session has a process file.
func (s *Session) HasFile() bool { return s.file != nil }

// MayShare returns an error if the user is barred from sharing memory.
func (s *Session) MayShare() error { return s.manager.barred.check(s.user.Holder, time.Now()) }

// CreateFile makes a process file of size bytes, and returns its descriptor. The session has none.
func (s *Session) CreateFile(size uint64) (fd int, err error) {
	f, err := s.manager.files.create(s.user, size)
	if err != nil {
		return -1, err
	}
	s.use(f)
	return f.fd, nil
}

// JoinFile makes the process file of another session of the same user this session's too, by the program's descriptor of
// it. It returns the service's own descriptor and the size in bytes. The session has none.
func (s *Session) JoinFile(passed int) (fd int, size uint64, err error) {
	f, err := s.manager.files.join(s.user.Sharer, passed)
	if err != nil {
		return -1, 0, err
	}
	s.use(f)
	return f.fd, f.space, nil
}

func (s *Session) use(f *file) {
	s.file = f
	s.watchers.Go(func() { s.watchFile(f, nil) })
}

// watchFile ends the session when a file of its own must not be used any more, unless its use is over before.
func (s *Session) watchFile(f *file, over <-chan struct{}) {
	select {
	case <-s.over:
	case <-over:
	case <-f.ended:
		if !f.isPassed() {
			s.manager.barred.add(s.user.Holder, time.Now())
		}
		s.fail(f.cause)
	}
}

// Mapping returns a function that maps a part of the process file.
func (s *Session) Mapping(offset uint64, length int) func() (hca.Mapping, error) {
	return func() (hca.Mapping, error) {
		if s.file == nil {
			return hca.Mapping{}, fmt.Errorf("%w: the session shares no memory; request share_memory first", verbs.ErrInvalid)
		}
		return s.file.mapRegion(offset, length)
	}
}

// NotePagesGone bars the user of a session that has ended since its program has taken pages out of registered memory.
// Another session has its file already, and can do the same: after a second one, all of the user's end. Sessions that
// have passed the same file end with the first, and count as one, since any of their programs can have done it.
func (s *Session) NotePagesGone() {
	counted := s.manager.files.endPassed(s, errPagesShared)
	if again := s.manager.barred.add(s.user.Holder, time.Now()); again && !counted {
		s.manager.files.endOf(s.user.Quota, errOnceMore)
	}
}
