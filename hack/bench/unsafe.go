// SPDX-License-Identifier: Apache-2.0

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// messageBatch contains the arguments of sendmmsg(2) and recvmmsg(2).
type messageBatch struct {
	headers  []mmsghdr
	vectors  []unix.Iovec
	buffers  []byte
	controls []byte // controlSize bytes per message, or nil
}

// controlSize is the length of a control message with one number.
var controlSize = unix.CmsgSpace(4)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

func newMessageBatch(count, size int) *messageBatch {
	b := &messageBatch{headers: make([]mmsghdr, count), vectors: make([]unix.Iovec, count), buffers: make([]byte, count*size)}
	for i := range b.headers {
		b.vectors[i].Base = &b.buffers[i*size]
		b.vectors[i].SetLen(size)
		b.headers[i].header.Iov = &b.vectors[i]
		b.headers[i].header.SetIovlen(1)
	}
	return b
}

// oneBuffer makes all messages of the batch use the same memory.
func (b *messageBatch) oneBuffer() {
	for i := range b.vectors {
		b.vectors[i].Base = &b.buffers[0]
	}
}

// addControl requests a control message with each received one.
func (b *messageBatch) addControl() {
	b.controls = make([]byte, len(b.headers)*controlSize)
	for i := range b.headers {
		b.headers[i].header.Control = &b.controls[i*controlSize]
		b.headers[i].header.SetControllen(controlSize)
	}
}

// control returns the control data of message i, and resets its length for the next receive.
func (b *messageBatch) control(i int) []byte {
	h := &b.headers[i].header
	length := int(h.Controllen)
	h.SetControllen(controlSize)
	return b.controls[i*controlSize:][:length]
}

// send sends the batch with one raw system call, as a C program would.
func (b *messageBatch) send(fd int) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])), uintptr(len(b.headers)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// receive waits for one message, and reads all available ones.
func (b *messageBatch) receive(fd int) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])), uintptr(len(b.headers)), unix.MSG_WAITFORONE, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
