// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"log/slog"
	"time"

	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/server/peer"
)

// Manager is the memory of all sessions of a service.
type Manager struct {
	users  *peer.Users
	log    *peer.Log
	arenas arenaWatch
	files  files
	barred barred // users that share no memory
}

// NewManager returns a manager without sessions. It logs by log; lines about clients are limited by limited.
func NewManager(users *peer.Users, log *slog.Logger, limited *peer.Log) *Manager {
	return &Manager{
		users: users, log: limited, barred: newBarred(whyNoMemory),
		arenas: arenaWatch{barred: newBarred(whyNoSessions), sessions: map[*Session]int64{}},
		files:  files{all: map[fileKey]*file{}, guard: guard{log: log}},
	}
}

// User is the owner of a session's memory.
type User struct {
	Holder peer.Holder
	Sharer peer.Sharer
	Quota  *quota.Quota
	Log    *slog.Logger
}

// Open makes the memory of a session. It returns an error if the user is barred from opening sessions.
func (m *Manager) Open(user User) (*Session, error) {
	if err := m.arenas.barred.check(user.Holder, time.Now()); err != nil {
		return nil, err
	}
	arena, err := newArena(user.Quota, user.Quota.Limits().Memory)
	if err != nil {
		return nil, err
	}
	return &Session{manager: m, user: user, arena: arena, over: make(chan struct{}), passed: map[*file]bool{}}, nil
}

// Files returns the number of files of programs that are open.
func (m *Manager) Files() int {
	m.files.mu.Lock()
	defer m.files.mu.Unlock()
	return len(m.files.all)
}

// Close waits until the files of all sessions are closed, or until hurry is closed. The sessions have been closed.
func (m *Manager) Close(hurry <-chan struct{}) {
	left := make(chan struct{})
	go func() {
		m.files.leaving.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-hurry:
	}
	m.files.guard.close()
}
