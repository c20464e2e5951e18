package mcast

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// record lists, in a file, the addresses that one Memberships has made:
//
//	DIR/memberships-COOKIE-INDEX-RANDOM
//	239.1.1.1······\n        lines of 16 bytes; a free one is blank
//
// The namespace is told by its cookie (socket(7), SO_NETNS_COOKIE): unlike inode
// numbers, neither it nor the interface's index is given out twice before the machine
// restarts. The file is locked while its process lives (flock(2)), and there is none
// while there is nothing to list. A line is written in one piece, before its address
// is made, and is not forced to disk: it is to outlive the process, not the kernel.
type record struct {
	dir, prefix string
	file        *os.File // nil: nothing listed
	lines       map[netip.Addr]int64
	free        []int64
}

const recordLine = 16 // bytes: the longest IPv4 address, and the end of the line

func newRecord(dir string, cookie uint64, index int) *record {
	return &record{
		dir: dir, prefix: fmt.Sprintf("memberships-%d-%d-", cookie, index),
		lines: map[netip.Addr]int64{},
	}
}

func (r *record) add(address netip.Addr) error {
	if r.file == nil {
		if err := r.create(); err != nil {
			return err
		}
	}
	line := int64(len(r.lines))
	if n := len(r.free); n > 0 {
		line = r.free[n-1]
	}
	if err := r.write(line, address.String()); err != nil {
		return errors.Join(err, r.tidy())
	}
	if n := len(r.free); n > 0 {
		r.free = r.free[:n-1]
	}
	r.lines[address] = line
	return nil
}

// remove is called when the address is gone.
func (r *record) remove(address netip.Addr) error {
	line, ok := r.lines[address]
	if !ok {
		return nil
	}
	if err := r.write(line, ""); err != nil {
		return err
	}
	delete(r.lines, address)
	r.free = append(r.free, line)
	return r.tidy()
}

func (r *record) write(line int64, text string) error {
	_, err := r.file.WriteAt(fmt.Appendf(nil, "%-*s\n", recordLine-1, text), line*recordLine)
	return err
}

// tidy removes a file that lists nothing.
func (r *record) tidy() error {
	if len(r.lines) > 0 || r.file == nil {
		return nil
	}
	err := errors.Join(os.Remove(r.file.Name()), r.file.Close())
	r.file, r.free = nil, nil
	return err
}

// close leaves the file to the next process, if there is something in it.
func (r *record) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// create makes the file. Nobody else looks at files meanwhile and takes it for one
// without owner.
func (r *record) create() error {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	unlock, err := lockDir(r.dir)
	if err != nil {
		return err
	}
	defer unlock()
	file, err := os.CreateTemp(r.dir, r.prefix)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), os.Remove(file.Name()), file.Close())
	}
	r.file = file
	return nil
}

// lockDir keeps others from making or sweeping records. The lock is a file that only
// its owner can open: everybody may lock what they can read.
func lockDir(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "memberships.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return func() { file.Close() }, nil
}
