package server

import (
	"errors"
	"time"

	"github.com/roced/roced/verbs/hca/quota"
	"golang.org/x/sys/unix"
)

// Who touches a page while the program takes it out of its process file waits until the program has taken out all that it
// takes at once, and nothing can interrupt that. So what the card may have to wait for is as long as a user's files have
// pages, also pages that are not registered. The files are looked at, and sessions end whose user's have too many.

const (
	// fileLook is how often files are looked at, while there are some.
	fileLook = 100 * time.Millisecond
	// fileRoom is how much larger a user's files may be than the user's limit of memory: what is copied into a file
	// before it is registered, or copied back, is not registered.
	fileRoom = 2
)

// Why sessions end.
var (
	errFilesTooLarge = errors.New("the files of registered memory of the user have more than twice as many bytes as the user may register; register less at once")
	errOnceMore      = errors.New("two programs of the user have taken pages out of memory that they had registered, within a minute")
	errPagesShared   = errors.New("pages were taken out of a file that this program and others share, and have registered")
)

// watch looks at the files while there are some.
func (p *processFiles) watch() {
	for range time.Tick(fileLook) {
		if !p.look() {
			return
		}
	}
}

// look ends the use of files of which a user has too much; false if there are no files.
func (p *processFiles) look() (any bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 {
		p.watched = false
		return false
	}
	own, all := p.sizes(nil)
	for _, f := range p.all {
		sizes := own // others may have made larger what was passed: that ends the use of nothing else
		if f.isPassed() {
			sizes = all
		}
		if limit := f.quota.Limits().Memory; limit > 0 && sizes[f.quota]/fileRoom > limit && f.isMapped() {
			f.end(errFilesTooLarge)
		}
	}
	return true
}

// sizes are those of the process files of each user, and of all files; or of one user's alone. The caller holds mu.
func (p *processFiles) sizes(alone *quota.Quota) (own, all map[*quota.Quota]uint64) {
	type of struct {
		user *quota.Quota
		is   identity
	}
	counted := map[of]bool{} // one user may be several sharers
	own, all = map[*quota.Quota]uint64{}, map[*quota.Quota]uint64{}
	for _, f := range p.all {
		one := of{f.quota, f.is.identity}
		if counted[one] || alone != nil && alone != f.quota {
			continue
		}
		counted[one] = true
		size := f.size()
		all[f.quota] += size
		if !f.isPassed() {
			own[f.quota] += size
		}
	}
	return own, all
}

// sizeOf is the size of all files of a user.
func (p *processFiles) sizeOf(user *quota.Quota) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, all := p.sizes(user)
	return all[user]
}

// endOf ends the use of all files of a user.
func (p *processFiles) endOf(user *quota.Quota, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.all {
		if f.quota == user {
			f.end(cause)
		}
	}
}

// end ends the use of a file, once. The caller holds processFiles.mu.
func (f *processFile) end(cause error) {
	if !isClosed(f.ended) {
		f.cause = cause
		close(f.ended)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// size is how many bytes the file has pages for.
func (f *processFile) size() uint64 {
	const block = 512
	var s unix.Stat_t
	if unix.Fstat(f.fd, &s) != nil {
		return 0
	}
	return uint64(s.Blocks) * block
}

// isMapped says whether there are regions that the card could touch.
func (f *processFile) isMapped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.windows) > 0
}

// notePagesGone bars the user of a session that has ended, since its program has taken pages out of registered memory.
// Another session can do the same, which has its file already: after a second one, all of the user's end. Sessions that
// have passed the same file end with the first, and count as one: whoever has it can have done that.
func (c *connection) notePagesGone() {
	counted := c.server.files.endPassed(c, errPagesShared)
	if again := c.server.barred.add(c.peer.holder(), time.Now()); again && !counted {
		c.server.files.endOf(c.account.quota, errOnceMore)
	}
}

// watchFile ends the session when a file of its own is not to be used any more, unless its use is over before.
func (c *connection) watchFile(f *processFile, over <-chan struct{}) {
	select {
	case <-c.over:
	case <-over:
	case <-f.ended:
		if !f.isPassed() {
			c.server.barred.add(c.peer.holder(), time.Now())
		}
		c.server.complain(c.log, c.peer.party(), "a program's session has ended", f.cause)
		c.session.Fail(f.cause)
	}
}
