// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net"
	"syscall"

	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// The service accepts no descriptors from clients, except by file sockets (filesocket.go): the last close of a descriptor
// can block, and to drop a message closes the descriptors in it. From Linux 6.16 on the sender gets EPERM
// (SO_PASSRIGHTS). Before, a connection is read only after a look at the next message (proto.Conn): a message with
// descriptors stays in the socket, and the close of the socket is a blocking call of its user (blocking.go).

// RefuseRights makes a socket, and those that it accepts, refuse descriptors, if the kernel can.
func RefuseRights(conn any) {
	c, is := conn.(syscall.Conn)
	if !is {
		return
	}
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { refuseRights(int(fd)) })
	}
}

func refuseRights(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) }

// Refuse closes a socket that is not served, and reports the cause to the client unless it is nil.
func (u *Users) Refuse(socket *net.UnixConn, h Holder, cause error) {
	end := func() {
		if cause != nil {
			sendRefusal(socket, cause)
		}
		_ = socket.Close()
	}
	if !proto.AcceptsRights(socket) || !u.chargeRefused(h) {
		end()
		return
	}
	u.Run(h, func() {
		end()
		u.mu.Lock()
		defer u.mu.Unlock()
		a := u.accounts[h]
		a.quota.GiveDescriptors(1)
		a.refused--
		u.forget(h, a)
	})
}

// chargeRefused charges the descriptor of a socket that is not served to its user. It reports false if the user may have
// no more descriptors: then the caller closes the socket itself.
func (u *Users) chargeRefused(h Holder) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.account(h)
	if a.quota.TakeDescriptors(1) != nil {
		u.forget(h, a)
		return false
	}
	a.refused++
	return true
}

// sendRefusal reports to a client why it is not served. It does not wait.
func sendRefusal(socket *net.UnixConn, cause error) {
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool { // an unread hello would reset the connection
			_, _, _ = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_DONTWAIT)
			return true
		})
	}
	_ = proto.NewConn(socket, false).Send(proto.EncodeFailure(proto.Failure, proto.Hello.Number, 0, cause))
}
