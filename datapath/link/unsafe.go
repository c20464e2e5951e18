// SPDX-License-Identifier: Apache-2.0

package link

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// gather is a message of several pieces for sendmsg(2).
type gather struct {
	header unix.Msghdr
	pieces [maxTrain + 1]unix.Iovec
	count  int
}

func (g *gather) reset() { g.count = 0 }

// add appends a piece. The piece must not move until the message has been sent.
func (g *gather) add(piece []byte) {
	g.pieces[g.count].Base = unsafe.SliceData(piece)
	g.pieces[g.count].SetLen(len(piece))
	g.count++
}

// send sends the message without blocking. It uses a raw system call, which is hidden from the Go scheduler, for the
// reason given at xsk.Socket's kick.
func (g *gather) send(fd int) unix.Errno {
	g.header.Iov = &g.pieces[0]
	g.header.SetIovlen(g.count)
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&g.header)), unix.MSG_DONTWAIT)
	return errno
}
