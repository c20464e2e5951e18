package mcast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// sweepRecords hands the addresses in dead processes' records of a namespace to undo,
// and removes the records of which all are undone. Other users' are left to them.
func sweepRecords(dir string, cookie uint64, undo func(index int, addresses []netip.Addr) error) error {
	unlock, err := lockDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	paths, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("memberships-%d-*-*", cookie)))
	for _, path := range paths {
		var index int
		if _, bad := fmt.Sscanf(filepath.Base(path), "memberships-%d-%d-", &cookie, &index); bad == nil {
			err = errors.Join(err, sweepRecord(path, func(addresses []netip.Addr) error { return undo(index, addresses) }))
		}
	}
	return err
}

func sweepRecord(path string, undo func([]netip.Addr) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // its owner has just removed it, or is another user
	}
	if err != nil {
		return err
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil // its owner lives
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if err := undo(listed(string(text))); err != nil {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // its owner removed it between open and lock
}

// listed reads a record. A line that is none was never finished: its address had not
// been made.
func listed(text string) (addresses []netip.Addr) {
	for _, line := range strings.Fields(text) {
		if address, err := netip.ParseAddr(line); err == nil && address.Is4() {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
