// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// Memory that several processes share (MAP_SHARED of a memfd, or of a file in /dev/shm) cannot move into a process file:
// the other processes would continue with the old pages. So a program passes the file itself, and the service maps the
// parts that are registered. Its pages are treated like those of a process file; that they can be cut off too (ftruncate)
// has the same effect as a hole. Only files of memory are accepted: an access to a page of another file may have to wait
// for a disk, a network, or a program.

// passedUse is the use of a file that was passed by one session.
type passedUse struct {
	regions int
	over    chan struct{} // closed with the last of them
}

// checkMemoryFile returns an error if pages of a file cannot be registered. Only regular files of tmpfs and hugetlbfs have
// seals; the query does not reach other file systems, which might not answer.
func checkMemoryFile(fd int) error {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_PATH != 0 || flags&unix.O_ACCMODE != unix.O_RDWR {
		return fmt.Errorf("%w: the file that was passed is not open for reading and writing", verbs.ErrInvalid)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("%w: the file that was passed is not one of memory; use a memfd, or /dev/shm", verbs.ErrUnsupported)
	}
	var kind unix.Statfs_t
	switch err := unix.Fstatfs(fd, &kind); {
	case err != nil || kind.Type != unix.TMPFS_MAGIC:
		return fmt.Errorf("%w: the file that was passed has huge pages (hugetlb); use a memfd without them, or /dev/shm", verbs.ErrUnsupported)
	case seals&(unix.F_SEAL_WRITE|unix.F_SEAL_FUTURE_WRITE) != 0:
		return fmt.Errorf("%w: the file that was passed is sealed against writing", verbs.ErrInvalid)
	}
	return nil
}

// enterPassed returns a file that was passed, for one more region of a session.
func (fs *files) enterPassed(s *Session, passed int) (*file, error) {
	if err := checkMemoryFile(passed); err != nil {
		return nil, err
	}
	is, err := identify(passed)
	if err != nil {
		return nil, fmt.Errorf("%w: the file that was passed: %w", verbs.ErrInvalid, err)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.all[fileKey{is, s.user.Sharer}]
	switch {
	case f == nil:
		f, err = fs.add(s.user, proto.MaxProcessFile, func() (int, error) { return unix.FcntlInt(uintptr(passed), unix.F_DUPFD_CLOEXEC, 0) })
		if err != nil {
			return nil, err
		}
		f.uses = map[*Session]*passedUse{}
	case f.uses == nil:
		return nil, fmt.Errorf("%w: the file that was passed is a process file; register its pages by reg_mr", verbs.ErrInvalid)
	case isClosed(f.ended):
		return nil, fmt.Errorf("%w: the file that was passed: %w", verbs.ErrPermission, f.cause)
	case f.quota != s.user.Quota:
		return nil, fmt.Errorf("%w: the file that was passed is being given up by an earlier program; try again", verbs.ErrBusy)
	default:
		f.users++
	}
	use := f.uses[s]
	if use == nil {
		use = &passedUse{over: make(chan struct{})}
		f.uses[s] = use
		s.watchers.Go(func() { s.watchFile(f, use.over) })
	}
	use.regions++
	s.passed[f] = true
	return f, nil
}

// isPassed reports whether it is a file that was passed.
func (f *file) isPassed() bool { return f.uses != nil }

// endPassed ends the use of the files that a session has passed, for all sessions that have them. It reports whether the use
// of one of them had ended before.
func (fs *files) endPassed(s *Session, cause error) (ended bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range s.passed {
		ended = ended || isClosed(f.ended)
		f.end(cause)
	}
	return ended
}

// leavePassed ends the use by one region. The last close may block, and the caller does not wait for it.
func (fs *files) leavePassed(s *Session, f *file) {
	fs.mu.Lock()
	use := f.uses[s]
	if use.regions--; use.regions == 0 {
		delete(f.uses, s)
		close(use.over)
		if s.session.Err() == nil { // else it may be why the session has ended
			delete(s.passed, f)
		}
	}
	last := fs.forget(f)
	fs.mu.Unlock()
	if last {
		fs.leaving.Add(1)
		s.manager.users.Run(s.user.Holder, func() {
			defer fs.leaving.Done()
			f.close()
		})
	}
}

// PassedMapping returns a function that maps a part of a file that was passed.
func (s *Session) PassedMapping(passed int, offset uint64, length int) func() (hca.Mapping, error) {
	return func() (m hca.Mapping, err error) {
		files := &s.manager.files
		f, err := files.enterPassed(s, passed)
		if err != nil {
			return m, err
		}
		if size, limit := files.sizeOf(f.quota), f.quota.Limits().Memory; limit > 0 && size/fileRoom > limit {
			err = fmt.Errorf("%w: with the one that was passed the user's files have %d bytes, and %d may be registered; raise memory in [limits]", verbs.ErrLimit, size, limit)
		} else {
			m, err = f.mapRegion(offset, length)
		}
		if err != nil {
			files.leavePassed(s, f)
			return m, err
		}
		unmap := m.Unmap
		m.Unmap = func() {
			unmap()
			files.leavePassed(s, f)
		}
		return m, nil
	}
}
