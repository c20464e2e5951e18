// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// loadDescriptors is an upper limit for the number of descriptors that Load uses: maps, programs and their BTF.
const loadDescriptors = 32

// checkDescriptors returns an error if Load would run out of descriptors. Package ebpf would conclude from this that
// the kernel lacks a feature ("prealloc maps not supported"), until the process ends.
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
		return fmt.Errorf("%w: the limit of open files is %d (RLIMIT_NOFILE); raise LimitNOFILE= of the unit, or ulimit -n", err, limit.Cur)
	case errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w: the system-wide limit of open files is reached; raise the sysctl fs.file-max", err)
	}
	return nil
}
