package bpf

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// loadDescriptors is more than Load takes at once: for maps, programs, and what describes them.
const loadDescriptors = 32

// checkDescriptors says beforehand that Load cannot have its descriptors. The library would hide that: what it
// cannot make it takes for what the kernel does not support ("prealloc maps not supported"), for as long as
// the process lives.
func checkDescriptors() (err error) {
	var all []int
	for range loadDescriptors {
		var fd int
		if fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
			break
		}
		all = append(all, fd)
	}
	for _, fd := range all {
		_ = unix.Close(fd)
	}
	switch {
	case errors.Is(err, unix.EMFILE):
		var limit unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
		return fmt.Errorf("%w: the process may open %d files (RLIMIT_NOFILE); raise LimitNOFILE= of the unit, or ulimit -n", err, limit.Cur)
	case errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w: the machine may open no more files; raise the sysctl fs.file-max", err)
	}
	return nil
}
