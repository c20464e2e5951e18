// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"time"

	"github.com/roced/roced/verbs/hca/quota"
	"golang.org/x/sys/unix"
)

// An access to a page that the program is taking out of its file waits, uninterruptibly, until all pages that are taken
// out at once are out. So the card's longest wait grows with the pages of a user's files, also those that are not
// registered. The sizes of the files are checked, and the sessions of users whose files are too large end.

const (
	// checkGap is the interval at which files and arenas are checked, while there are some.
	checkGap = 100 * time.Millisecond
	// fileRoom is the factor by which a user's files may exceed the user's limit of memory: bytes that are copied into a
	// file before they are registered, or copied back, are not registered.
	fileRoom = 2
)

// The causes for which sessions end.
var (
	errFilesTooLarge = errors.New("the files of registered memory of the user have more than twice as many bytes as the user may register; register less at once")
	errOnceMore      = errors.New("two programs of the user have taken pages out of memory that they had registered, within a minute")
	errPagesShared   = errors.New("pages were taken out of a file that this program and others share, and have registered")
)

// watch checks the files while there are some.
func (fs *files) watch() {
	for range time.Tick(checkGap) {
		if !fs.check() {
			return
		}
	}
}

// check ends the use of the files of users whose files are too large. It reports whether there are files.
func (fs *files) check() (any bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.all) == 0 {
		fs.watched = false
		return false
	}
	own, all := fs.sizes(nil)
	for _, f := range fs.all {
		sizes := own // a file that was passed may have been extended by others: only the use of such files ends then
		if f.isPassed() {
			sizes = all
		}
		if limit := f.quota.Limits().Memory; limit > 0 && sizes[f.quota]/fileRoom > limit && f.isMapped() {
			f.end(errFilesTooLarge)
		}
	}
	return true
}

// sizes returns the sizes in bytes of the process files of each user, and of all files; of one user only, unless it is nil.
// The caller holds mu.
func (fs *files) sizes(alone *quota.Quota) (own, all map[*quota.Quota]uint64) {
	type of struct {
		user *quota.Quota
		is   identity
	}
	counted := map[of]bool{} // one user may be several sharers
	own, all = map[*quota.Quota]uint64{}, map[*quota.Quota]uint64{}
	for _, f := range fs.all {
		one := of{f.quota, f.key.identity}
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

// sizeOf returns the size of all files of a user in bytes.
func (fs *files) sizeOf(user *quota.Quota) uint64 {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	_, all := fs.sizes(user)
	return all[user]
}

// endOf ends the use of all files of a user.
func (fs *files) endOf(user *quota.Quota, cause error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.all {
		if f.quota == user {
			f.end(cause)
		}
	}
}

// end ends the use of a file, once. The caller holds files.mu.
func (f *file) end(cause error) {
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

// size returns the number of bytes for which the file has pages.
func (f *file) size() uint64 {
	const block = 512
	var s unix.Stat_t
	if unix.Fstat(f.fd, &s) != nil {
		return 0
	}
	return uint64(s.Blocks) * block
}

// isMapped reports whether there are regions, which the card could access.
func (f *file) isMapped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.windows) > 0
}
