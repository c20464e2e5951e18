// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"runtime"
	"testing"

	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// TestUnprivilegedFindsNoneGone: without access to other users' processes, no namespace is considered destroyed.
func TestUnprivilegedFindsNoneGone(t *testing.T) {
	needs.Root(t)
	result := make(chan bool)
	go func() {
		runtime.LockOSThread() // the thread ends with its goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			t.Error(errno)
		}
		result <- Namespace{Cookie: 77, Inode: 1}.gone()
	}()
	if <-result {
		t.Error("a namespace is considered destroyed")
	}
}
