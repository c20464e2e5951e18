// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is struct mmsghdr.
type message struct {
	header unix.Msghdr
	length uint32 // length of the received data, in bytes
}

// name is an IPv4 or IPv6 socket address.
type name [unix.SizeofSockaddrInet6]byte

// aim prepares a message to be received into a buffer.
func (m *message) aim(from *name, piece *unix.Iovec, buffer, control []byte) {
	piece.Base = unsafe.SliceData(buffer)
	piece.SetLen(len(buffer))
	m.describe(from, len(from), piece, 1, control)
}

// describe sets the header of a message. The memory that it points to must not move.
func (m *message) describe(at *name, nameLen int, pieces *unix.Iovec, count int, control []byte) {
	m.header.Name, m.header.Namelen = &at[0], uint32(nameLen)
	m.header.Iov = pieces
	m.header.SetIovlen(count)
	m.header.Control = unsafe.SliceData(control)
	m.header.SetControllen(len(control))
	m.header.Flags = 0
}

func setPiece(piece *unix.Iovec, b []byte) {
	piece.Base = unsafe.SliceData(b)
	piece.SetLen(len(b))
}

// receiveMessages and sendMessages do not block. They use raw system calls, which are hidden from the Go scheduler, for
// the reason given at xsk.Socket's kick.
func receiveMessages(fd int, list []message) (count int, errno unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

func sendMessages(fd int, list []message) (count int, errno unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// drops returns the number of packets that a socket has dropped (SK_MEMINFO_DROPS in linux/sock_diag.h); 0 if it cannot
// be read.
func (s *Socket) drops() uint64 {
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(info[8])
}

// ready stores the readable descriptors of an epoll instance in events, and returns their number. It does not block.
func ready(poll int, events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(poll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}
