package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// messageBatch is what sendmmsg(2) and recvmmsg(2) take.
type messageBatch struct {
	headers []mmsghdr
	vectors []unix.Iovec
	buffers []byte
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

func newMessageBatch(count, size int) *messageBatch {
	b := &messageBatch{make([]mmsghdr, count), make([]unix.Iovec, count), make([]byte, count*size)}
	for i := range b.headers {
		b.vectors[i].Base = &b.buffers[i*size]
		b.vectors[i].SetLen(size)
		b.headers[i].header.Iov = &b.vectors[i]
		b.headers[i].header.SetIovlen(1)
	}
	return b
}

// oneBuffer has all messages of the batch be the same memory.
func (b *messageBatch) oneBuffer() {
	for i := range b.vectors {
		b.vectors[i].Base = &b.buffers[0]
	}
}

// send sends the batch with one raw system call, as a C program would.
func (b *messageBatch) send(fd int) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])), uintptr(len(b.headers)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// receive waits for one message and takes what else is there.
func (b *messageBatch) receive(fd int) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])), uintptr(len(b.headers)), unix.MSG_WAITFORONE, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
