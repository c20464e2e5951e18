package server

import (
	"net"
	"syscall"

	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// The service accepts no descriptors from clients, except by file sockets (passfile.go). A client can send one whose last
// close blocks, and to drop a message is to close the descriptors in it (blocking.go). From Linux 6.16 on the senders get
// EPERM (SO_PASSRIGHTS). Before it a connection is read only after a look at the next message (proto.Conn), and a message
// with descriptors stays in the socket, whose close is a blocking call of its user.

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

// dismiss closes a socket of a user that is not served, and reports the cause to the client if there is one.
func (s *Server) dismiss(socket *net.UnixConn, of holder, cause error) {
	end := func() {
		if cause != nil {
			refuse(socket, cause)
		}
		_ = socket.Close()
	}
	if !proto.AcceptsRights(socket) || !s.chargeDismissed(of) {
		end()
		return
	}
	s.blocking.run(of, func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		a := s.accounts[of]
		a.quota.GiveDescriptors(1)
		a.dismissed--
		s.forget(of, a)
	})
}

// chargeDismissed charges the descriptor of a socket that is not served to its user; false if there are too few. Then the
// goroutine that accepts connections closes the socket itself.
func (s *Server) chargeDismissed(of holder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.account(of)
	if a.quota.TakeDescriptors(1) != nil {
		s.forget(of, a)
		return false
	}
	a.dismissed++
	return true
}
