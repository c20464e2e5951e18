package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Nobody is to send descriptors to the service. Who closes the last one of a TCP socket that lingers (SO_LINGER)
// waits as long as its owner has said, and a message that is dropped with a descriptor in it is such a close. So
// sockets on which the card or the accepting goroutine depend take none: the sender gets EPERM. Linux has that
// from 6.16 on. Before it, what such a close can hold up is a goroutine of the connection that it came by, or of
// dismissals: nothing else closes or reads what a client can send to.

// refuseRights has a socket, and those that it accepts, take no descriptors.
func refuseRights(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) }

func refuseRightsOf(conn any) {
	c, is := conn.(syscall.Conn)
	if !is {
		return
	}
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { refuseRights(int(fd)) })
	}
}

// maxDismissals is how many sockets of those who are not served are being closed at once. Beyond that the
// accepting goroutine waits.
const maxDismissals = 256

// dismissals are the closes of sockets that are not served.
type dismissals chan struct{}

// dismiss closes a socket in a goroutine: what is in it can make that wait. A cause is told first.
func (d dismissals) dismiss(socket *net.UnixConn, cause error) {
	d <- struct{}{}
	go func() {
		defer func() { <-d }()
		if cause != nil {
			refuse(socket, cause)
		} else {
			_ = socket.Close()
		}
	}()
}
