// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// MaxDescriptors is the maximum number of descriptors of a message.
const MaxDescriptors = 3

// Conn sends and receives packets. One goroutine receives; any may send, one packet each.
type Conn struct {
	socket *net.UnixConn
	buffer []byte
	rights []byte // nil: no descriptors are accepted
	peeks  bool   // the peer can send descriptors that are not accepted: they must stay in the socket
	poll   poll
}

// NewConn returns a connection. A client accepts descriptors, the service none.
func NewConn(socket *net.UnixConn, takesDescriptors bool) *Conn {
	c := &Conn{socket: socket, buffer: make([]byte, MaxMessage+1)}
	if takesDescriptors {
		c.rights = make([]byte, unix.CmsgSpace(4*MaxDescriptors))
	} else {
		c.peeks = AcceptsRights(socket)
	}
	return c
}

// AcceptsRights reports whether the peer of a socket can send descriptors to it: it can unless SO_PASSRIGHTS is off, which
// needs Linux 6.16.
func AcceptsRights(socket *net.UnixConn) (accepts bool) {
	accepts = true
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			on, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS)
			accepts = err != nil || on != 0
		})
	}
	return accepts
}

// Send sends a packet, with descriptors, which remain owned by the caller.
func (c *Conn) Send(packet []byte, descriptors ...int) error {
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	_, _, err := c.socket.WriteMsgUnix(packet, rights, nil)
	return err
}

// Receive waits for a message. Its body is valid until the next call; the caller owns the descriptors. io.EOF when the
// other side has closed, ErrMalformed for an invalid message. A message with descriptors that are not accepted stays in
// the socket: the kernel would close them within the call, and the last close of one may block.
func (c *Conn) Receive() (m Message, descriptors []int, err error) {
	n, rightsLen, flags, err := c.read()
	if errors.Is(err, unix.ECONNRESET) { // it closed before it had read all; its earlier messages are still in the socket
		n, rightsLen, flags, err = c.read()
	}
	if rightsLen > 0 {
		descriptors = ParseRights(c.rights[:rightsLen])
	}
	if err == nil {
		m, err = c.check(n, flags)
	}
	if err != nil {
		CloseAll(descriptors)
		return Message{}, nil, err
	}
	return m, descriptors, nil
}

func (c *Conn) check(n, flags int) (Message, error) {
	if n > MaxMessage || flags&unix.MSG_TRUNC != 0 {
		return Message{}, fmt.Errorf("%w: longer than %d bytes", ErrMalformed, MaxMessage)
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return Message{}, fmt.Errorf("%w: unexpected descriptors", ErrMalformed)
	}
	return Parse(c.buffer[:n])
}

// ParseRights returns the descriptors of a message, which the caller owns.
func ParseRights(raw []byte) (descriptors []int) {
	messages, err := unix.ParseSocketControlMessage(raw)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if some, err := unix.ParseUnixRights(&m); err == nil {
			descriptors = append(descriptors, some...)
		}
	}
	return descriptors
}

// CloseAll closes descriptors of a message.
func CloseAll(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.Close(fd)
	}
}
