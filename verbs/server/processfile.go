package server

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// processFile is memory of a process's own, which its sessions share with the service: a memfd in which each page lies
// at the process's own virtual address, or a file that it has passed (memoryfile.go). The service maps what is
// registered, and no more.
type processFile struct {
	fd    int
	is    ownedFile
	space uint64 // bytes, holes included: no region lies above
	quota *quota.Quota
	holes *holes
	users int                        // sessions that share it, or regions of a file that was passed; under processFiles.mu
	uses  map[*connection]*passedUse // of a file that was passed: by the sessions that have; likewise

	ended chan struct{} // closed when it is not to be used any more
	cause error         // why; written before ended is closed

	mu      sync.Mutex
	windows map[span]*window
}

// identity distinguishes files, however they were opened. The inode alone does not: that of a System V segment is its id, which
// another segment or a memfd may have too. The handle of name_to_handle_at(2) differs; it is empty if that call fails.
type identity struct {
	device, inode uint64
	handle        string
}

// ownedFile is one whose pages count as a user's.
type ownedFile struct {
	identity
	of sharer
}

// processFiles are those of all sessions.
type processFiles struct {
	holes holes

	mu      sync.Mutex
	all     map[ownedFile]*processFile
	watched bool

	leaving sync.WaitGroup // of files that were passed
}

// open makes a process file of size bytes for a session of a user.
func (p *processFiles) open(of sharer, quota *quota.Quota, size uint64) (f *processFile, err error) {
	if size == 0 || size > proto.MaxProcessFile || size%uint64(pageSize) != 0 {
		return nil, fmt.Errorf("%w: a process file of 0x%x bytes; request whole pages of %d bytes, at most 0x%x bytes", verbs.ErrInvalid, size, pageSize, uint64(proto.MaxProcessFile))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(of, quota, size, func() (int, error) { return sealedMemfd(int(size)) })
}

// add has one more file, of which it owns the descriptor. The caller holds mu.
func (p *processFiles) add(of sharer, quota *quota.Quota, size uint64, open func() (fd int, err error)) (*processFile, error) {
	if err := quota.TakeDescriptors(1); err != nil {
		return nil, err
	}
	f := &processFile{is: ownedFile{of: of}, space: size, quota: quota, holes: &p.holes, users: 1, windows: map[span]*window{}, ended: make(chan struct{})}
	var err error
	if f.fd, err = open(); err == nil {
		if f.is.identity, err = identify(f.fd); err != nil {
			_ = unix.Close(f.fd)
		}
	}
	if err != nil {
		quota.GiveDescriptors(1)
		return nil, fmt.Errorf("%w: a file for a program's memory: %w", verbs.ErrHost, err)
	}
	p.all[f.is] = f
	if !p.watched {
		p.watched = true
		go p.watch()
	}
	return f, nil
}

// identify finds a file of memory. Others have no seals, and their file systems, which may be slow to answer, are not asked.
func identify(fd int) (identity, error) {
	var s unix.Statx_t
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return identity{}, err
	}
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &s)
	is := identity{device: unix.Mkdev(s.Dev_major, s.Dev_minor), inode: s.Ino}
	if handle, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH); err == nil {
		is.handle = string(handle.Bytes())
	}
	return is, err
}

// join gives the file that a session has passed, of another session of the same user. The service uses its own
// descriptor of it.
func (p *processFiles) join(of sharer, passed int) (*processFile, error) {
	is, err := identify(passed)
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.all[ownedFile{is, of}]
	if err != nil || f == nil || f.uses != nil {
		return nil, fmt.Errorf("%w: the file that was passed is no process file of a session of this user; pass what share_memory gave", verbs.ErrInvalid)
	}
	f.users++
	return f, nil
}

// leave ends a session's use. Its regions are gone. The pages stay the program's.
func (p *processFiles) leave(f *processFile) {
	p.mu.Lock()
	last := p.forget(f)
	p.mu.Unlock()
	if last {
		f.close()
	}
}

// forget ends one use, and says whether it was the last. The caller holds mu.
func (p *processFiles) forget(f *processFile) (last bool) {
	f.users--
	if f.users > 0 {
		return false
	}
	delete(p.all, f.is)
	return true
}

// close closes the file, of which nothing is mapped. Of a program that has died this frees its memory.
func (f *processFile) close() {
	_ = unix.Close(f.fd)
	f.quota.GiveDescriptors(1)
}

// mapRegion maps the part of a region. What counts as the user's is whole pages, once for each region that has them.
func (f *processFile) mapRegion(offset uint64, length int) (m hca.Mapping, err error) {
	if length < 0 || offset > f.space || uint64(length) > f.space-offset {
		return m, fmt.Errorf("%w: %d bytes at 0x%x of a file of 0x%x", verbs.ErrInvalid, length, offset, f.space)
	}
	if length == 0 {
		return hca.Mapping{Unmap: func() {}}, nil
	}
	whole := wholePages(offset, length)
	if err := f.quota.TakeMemory(whole.size); err != nil {
		return m, err
	}
	w, err := f.enter(spanOf(offset, length, f.space))
	if err != nil {
		f.quota.GiveMemory(whole.size)
		return m, err
	}
	m.Unmap = func() {
		f.leave(w, &whole)
		f.quota.GiveMemory(whole.size)
	}
	if err := f.populate(w, &whole); err != nil {
		m.Unmap()
		return m, fmt.Errorf("%d bytes at 0x%x of the file: %w", length, offset, err)
	}
	m.Memory = w.part(span{offset, uint64(length)})
	return m, nil
}
