// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// file is memory of a process's own, which its sessions share with the service: a process file, which is a memfd in which
// each page lies at the process's own virtual address, or a file that the program has passed (passed.go). The service maps
// only the parts that are registered.
type file struct {
	fd    int
	key   fileKey
	space uint64 // bytes, holes included: all regions lie below
	quota *quota.Quota
	guard *guard
	users int                     // sessions that share it, or regions of a file that was passed; under files.mu
	uses  map[*Session]*passedUse // of a file that was passed; under files.mu

	ended chan struct{} // closed when it must not be used any more
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

// fileKey identifies a file whose pages are charged to a user. A file that several users have passed is there once for each.
type fileKey struct {
	identity
	of peer.Sharer
}

// files are those of all sessions.
type files struct {
	guard guard

	mu      sync.Mutex
	all     map[fileKey]*file
	watched bool

	leaving sync.WaitGroup // closes of files that were passed
}

// create makes a process file of size bytes for a session of a user.
func (fs *files) create(user User, size uint64) (f *file, err error) {
	if size == 0 || size > proto.MaxProcessFile || size%uint64(pageSize) != 0 {
		return nil, fmt.Errorf("%w: a process file of 0x%x bytes; request whole pages of %d bytes, at most 0x%x bytes", verbs.ErrInvalid, size, pageSize, uint64(proto.MaxProcessFile))
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.add(user, size, func() (int, error) { return sealedMemfd(int(size)) })
}

// add adds a file, whose descriptor it owns. The caller holds mu.
func (fs *files) add(user User, size uint64, open func() (fd int, err error)) (*file, error) {
	if err := user.Quota.TakeDescriptors(1); err != nil {
		return nil, err
	}
	f := &file{key: fileKey{of: user.Sharer}, space: size, quota: user.Quota, guard: &fs.guard, users: 1, windows: map[span]*window{}, ended: make(chan struct{})}
	var err error
	if f.fd, err = open(); err == nil {
		if f.key.identity, err = identify(f.fd); err != nil {
			_ = unix.Close(f.fd)
		}
	}
	if err != nil {
		user.Quota.GiveDescriptors(1)
		return nil, fmt.Errorf("%w: a file for a program's memory: %w", verbs.ErrHost, err)
	}
	fs.all[f.key] = f
	if !fs.watched {
		fs.watched = true
		go fs.watch()
	}
	return f, nil
}

// identify returns the identity of a file of memory. Other files have no seals; their file systems, which may be slow, are not queried.
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

// join returns the process file of another session of the same user, which a session has passed. The service uses its own
// descriptor of it.
func (fs *files) join(of peer.Sharer, passed int) (*file, error) {
	is, err := identify(passed)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.all[fileKey{is, of}]
	if err != nil || f == nil || f.uses != nil {
		return nil, fmt.Errorf("%w: the file that was passed is not a process file of a session of this user; pass the file that share_memory has returned", verbs.ErrInvalid)
	}
	f.users++
	return f, nil
}

// leave ends the use by a session, whose regions have been deregistered. The pages stay the program's.
func (fs *files) leave(f *file) {
	fs.mu.Lock()
	last := fs.forget(f)
	fs.mu.Unlock()
	if last {
		f.close()
	}
}

// forget ends one use, and reports whether it was the last. The caller holds mu.
func (fs *files) forget(f *file) (last bool) {
	f.users--
	if f.users > 0 {
		return false
	}
	delete(fs.all, f.key)
	return true
}

// close closes the file, of which no part is mapped. If the program has ended, this frees its memory.
func (f *file) close() {
	_ = unix.Close(f.fd)
	f.quota.GiveDescriptors(1)
}

// mapRegion maps the part of a region. The user is charged for whole pages, once for each region that has them.
func (f *file) mapRegion(offset uint64, length int) (m hca.Mapping, err error) {
	if length < 0 || offset > f.space || uint64(length) > f.space-offset {
		return m, fmt.Errorf("%w: %d bytes at 0x%x of a file of 0x%x", verbs.ErrInvalid, length, offset, f.space)
	}
	if length == 0 {
		return hca.Mapping{Unmap: func() {}}, nil
	}
	whole := pagesOf(offset, length)
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
