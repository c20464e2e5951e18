package server

import (
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// Memory that several processes share (MAP_SHARED of a memfd, or of a file in /dev/shm) cannot move into a process file:
// the others would go on with the old pages. So a program passes the file itself, and the service maps of it what is
// registered. All that is true of a process file's pages is true of its pages, except that they can be cut off too
// (ftruncate), which is as if they were taken out. Only files of memory are taken: whoever touches a page of another
// may have to wait for a disk, a network, or a program.

// passedUse is what a session has of a file that was passed.
type passedUse struct {
	regions int
	over    chan struct{} // closed with the last of them
}

// checkMemoryFile says why pages of a file cannot be registered. Only regular files of tmpfs and hugetlbfs have seals, and
// to ask for them asks no file system, which might not answer.
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

// enterPassed gives a file that was passed for one more region of a session.
func (p *processFiles) enterPassed(c *connection, passed int) (*processFile, error) {
	if err := checkMemoryFile(passed); err != nil {
		return nil, err
	}
	is, err := identify(passed)
	if err != nil {
		return nil, fmt.Errorf("%w: the file that was passed: %w", verbs.ErrInvalid, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.all[ownedFile{is, c.peer.sharer()}]
	switch {
	case f == nil:
		f, err = p.add(c.peer.sharer(), c.account.quota, proto.MaxProcessFile, func() (int, error) { return unix.FcntlInt(uintptr(passed), unix.F_DUPFD_CLOEXEC, 0) })
		if err != nil {
			return nil, err
		}
		f.uses = map[*connection]*passedUse{}
	case f.uses == nil:
		return nil, fmt.Errorf("%w: the file that was passed is a process file; register its pages by reg_mr", verbs.ErrInvalid)
	case isClosed(f.ended):
		return nil, fmt.Errorf("%w: the file that was passed: %w", verbs.ErrPermission, f.cause)
	case f.quota != c.account.quota:
		return nil, fmt.Errorf("%w: the file that was passed is being given up by an earlier program; try again", verbs.ErrBusy)
	default:
		f.users++
	}
	use := f.uses[c]
	if use == nil {
		use = &passedUse{over: make(chan struct{})}
		f.uses[c] = use
		c.background.Go(func() { c.watchFile(f, use.over) })
	}
	use.regions++
	c.passed[f] = true
	return f, nil
}

// isPassed says whether it is a file that was passed.
func (f *processFile) isPassed() bool { return f.uses != nil }

// endPassed ends the use of the files that a session has passed, for all that have them, and says whether one of them had
// ended before.
func (p *processFiles) endPassed(c *connection, cause error) (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range c.passed {
		ended = ended || isClosed(f.ended)
		f.end(cause)
	}
	return ended
}

// leavePassed ends the use by one region. The last close may take long, and the caller does not wait for it.
func (p *processFiles) leavePassed(c *connection, f *processFile) {
	p.mu.Lock()
	use := f.uses[c]
	if use.regions--; use.regions == 0 {
		delete(f.uses, c)
		close(use.over)
		if c.session.Err() == nil { // else it may be why the session has ended
			delete(c.passed, f)
		}
	}
	last := p.forget(f)
	p.mu.Unlock()
	if last {
		p.leaving.Add(1)
		c.server.blocking.run(c.peer.holder(), func() {
			defer p.leaving.Done()
			f.close()
		})
	}
}

// passedMapping maps a part of a file that was passed.
func (c *connection) passedMapping(passed int, offset uint64, length int) func() (hca.Mapping, error) {
	return func() (m hca.Mapping, err error) {
		files := &c.server.files
		f, err := files.enterPassed(c, passed)
		if err != nil {
			return m, err
		}
		if size, limit := files.sizeOf(f.quota), f.quota.Limits().Memory; limit > 0 && size/fileRoom > limit {
			err = fmt.Errorf("%w: with the one that was passed the user's files have %d bytes, and %d may be registered; raise memory in [limits]", verbs.ErrLimit, size, limit)
		} else {
			m, err = f.mapRegion(offset, length)
		}
		if err != nil {
			files.leavePassed(c, f)
			return m, err
		}
		unmap := m.Unmap
		m.Unmap = func() {
			unmap()
			files.leavePassed(c, f)
		}
		return m, nil
	}
}

// inPassedFile is a place in the file that was passed, which it takes.
func inPassedFile(c *connection, offset uint64, length int, do func(mapped func() (hca.Mapping, error)) error) error {
	files, err := c.fileSocket.take()
	defer c.fileSocket.close(files...)
	if err != nil {
		return err
	}
	if err := c.server.barred.check(c.peer.holder(), time.Now()); err != nil {
		return err
	}
	return do(c.passedMapping(files[0], offset, length))
}
