package server

import (
	"sync"
	"sync/atomic"
)

// blocking runs the system calls that a client can make block for as long as it likes: the last close of a file that it
// has passed (a socket with SO_LINGER, a file of its own FUSE file system, a terminal, a Unix socket that contains such
// a one), and the removal of pages of a memfd whose inode lock it holds. Such a call cannot be interrupted, and occupies a
// thread until it returns. Therefore threads are limited, for each user and for all users together. Further calls of the
// user wait in order. The resources that a call releases are charged to its user until then: descriptors, memory, and the
// connection itself.
//
// The file is not made harmless beforehand: the client can have put it into the queue of another socket, it can change
// it again, and it can share it with other processes.
type blocking struct {
	mu      sync.Mutex
	users   map[holder]*userCalls // those with calls
	threads int
}

// userCalls are the blocking calls of a user.
type userCalls struct {
	running int
	waiting []func()
}

const (
	// maxUserThreads is the number of threads for blocking calls of one user.
	maxUserThreads = 4
	// maxThreads is the number of threads for blocking calls of all users.
	maxThreads = 256
	// keptThreads are those of maxThreads that only users without a running call may take.
	keptThreads = maxThreads / 8
)

// run runs a call of a user in a goroutine, as soon as the user may have a thread for it.
func (b *blocking) run(of holder, call func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.users == nil {
		b.users = map[holder]*userCalls{}
	}
	u := b.users[of]
	if u == nil {
		u = &userCalls{}
		b.users[of] = u
	}
	u.waiting = append(u.waiting, call)
	b.start(of, u)
}

// start starts the calls of a user that may run. The caller holds mu.
func (b *blocking) start(of holder, u *userCalls) {
	for len(u.waiting) > 0 && b.admits(u) {
		call := u.waiting[0]
		u.waiting = u.waiting[1:]
		u.running++
		b.threads++
		go func() {
			call()
			b.end(of, u)
		}()
	}
}

func (b *blocking) admits(u *userCalls) bool {
	if u.running == 0 {
		return b.threads < maxThreads
	}
	return u.running < maxUserThreads && b.threads < maxThreads-keptThreads
}

// end notes that a call has returned, and starts those that waited for its thread.
func (b *blocking) end(of holder, u *userCalls) {
	b.mu.Lock()
	defer b.mu.Unlock()
	scarce := b.threads >= maxThreads-keptThreads
	u.running--
	b.threads--
	b.start(of, u)
	if u.running == 0 && len(u.waiting) == 0 {
		delete(b.users, of)
	}
	if !scarce {
		return
	}
	for other, calls := range b.users {
		b.start(other, calls)
	}
}

// place is a connection's place among those of its user. It is held by the connection, and by each blocking call for it.
type place struct {
	server *Server
	of     holder
	holds  atomic.Int32
	left   chan struct{} // closed when nothing holds it
}

func newPlace(s *Server, of holder) *place {
	p := &place{server: s, of: of, left: make(chan struct{})}
	p.holds.Store(1)
	return p
}

// block runs a call that the client can make block. It holds the place until it has returned.
func (p *place) block(call func()) {
	p.holds.Add(1)
	p.server.blocking.run(p.of, func() {
		call()
		p.release()
	})
}

// release ends one hold, and frees the place with the last one.
func (p *place) release() {
	if p.holds.Add(-1) == 0 {
		p.server.leave(p.of)
		close(p.left)
	}
}
