// SPDX-License-Identifier: Apache-2.0

package peer

import "sync"

// blocking runs the system calls that a client can make block for any time: the last close of a file that it
// has passed (a socket with SO_LINGER, a file of its own FUSE file system, a terminal, a Unix socket that contains such
// a file), and the removal of pages of a memfd whose inode lock the client holds. Such a call cannot be interrupted, and
// occupies a thread until it returns. Therefore the threads are limited, for each user and for all users together; further
// calls of the user wait in order. The resources that a call releases are charged to its user until then: descriptors,
// memory, and the connection itself.
//
// The file cannot be made harmless beforehand: the client may have put it into the queue of another socket, may
// change it again, and may share it with other processes.
type blocking struct {
	mu      sync.Mutex
	users   map[Holder]*userCalls // those with calls
	threads int
}

// userCalls are the blocking calls of a user.
type userCalls struct {
	running int
	waiting []func()
}

const (
	// MaxUserThreads is the largest number of threads for blocking calls of one user.
	MaxUserThreads = 4
	// maxThreads is the largest number of threads for blocking calls of all users.
	maxThreads = 256
	// keptThreads is the part of maxThreads that is reserved for users without a running call.
	keptThreads = maxThreads / 8
)

// Run runs a system call that programs of a user can make block, in a goroutine, when the user may have a thread for it.
func (u *Users) Run(of Holder, call func()) { u.blocking.run(of, call) }

func (b *blocking) run(of Holder, call func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.users == nil {
		b.users = map[Holder]*userCalls{}
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
func (b *blocking) start(of Holder, u *userCalls) {
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
	return u.running < MaxUserThreads && b.threads < maxThreads-keptThreads
}

// end frees the thread of a call that has returned, and starts the calls that waited for it.
func (b *blocking) end(of Holder, u *userCalls) {
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
