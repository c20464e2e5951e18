package server

import (
	"fmt"
	"syscall"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// fileSocket is where a client passes a file for the next command (an XRC domain's, or one of memory): a socket of its own,
// since the connection's takes no descriptors (rights.go). That command does what it needs of it, and the file is closed.
// The client chooses the file, and its last close may block (blocking.go). A connection has one such close at a time.
type fileSocket struct {
	place   *place
	account *account
	fd      int           // the service's end; 0: not open
	closed  chan struct{} // closed when the file that was passed before is; nil: there was none
}

const (
	// fileSocketDescriptors are those that passing a file takes: the service's end, the file, and what may come beside it.
	fileSocketDescriptors = 3
	// fileSocketWait is how long a client waits for what it has passed before to be closed.
	fileSocketWait = 5 * time.Second
)

// passFile hands the client's end of a socket over.
func passFile(c *connection, m proto.Message) error {
	if _, err := proto.PassFile.DecodeRequest(m.Body); err != nil {
		return err
	}
	end, err := c.fileSocket.open()
	if err != nil {
		return c.fail(m, err)
	}
	defer unix.Close(end)
	return reply(c, proto.PassFile.Untyped, m.ID, &proto.None{}, end)
}

// open makes the socket, and returns the client's end.
func (s *fileSocket) open() (end int, err error) {
	s.close()
	of := s.account.quota
	if s.closed != nil {
		select {
		case <-s.closed:
		case <-time.After(fileSocketWait):
			return 0, fmt.Errorf("%w: the file that was passed before is still being closed; try again", verbs.ErrBusy)
		}
	}
	if err := of.TakeDescriptors(fileSocketDescriptors); err != nil {
		return 0, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		of.GiveDescriptors(fileSocketDescriptors)
		return 0, fmt.Errorf("%w: a socket to pass a file: %w", verbs.ErrHost, err)
	}
	refuseRights(ends[1])
	s.fd = ends[0]
	return ends[1], nil
}

// close closes the socket, with all that was sent there, and files that came by it. Until that has returned the
// descriptors are charged to the user, and the connection too.
func (s *fileSocket) close(files ...int) {
	if s.fd == 0 {
		return
	}
	fd, closed := s.fd, make(chan struct{})
	s.fd, s.closed = 0, closed
	_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	s.place.block(func() {
		proto.CloseAll(append(files, fd))
		s.account.quota.GiveDescriptors(fileSocketDescriptors)
		close(closed)
	})
}

// take returns descriptors of the file that was passed, and of what was passed beside it. The message stays in the socket,
// which thereby keeps all that was passed: the kernel would close the descriptors that there is no room for within the call.
func (s *fileSocket) take() ([]int, error) {
	if s.fd == 0 {
		return nil, fmt.Errorf("%w: no file was passed", verbs.ErrInvalid)
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(s.fd, make([]byte, 1), rights, unix.MSG_PEEK|unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("%w: no file was passed: %w", verbs.ErrInvalid, err)
	}
	files := proto.ParseRights(rights[:n])
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: no file was passed", verbs.ErrInvalid)
	}
	return files, nil
}

// openXRCD opens an XRC domain, by the file that was passed if the request says so.
func openXRCD(c *connection, m proto.Message) error {
	r, err := proto.OpenXRCD.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	request := provider.OpenXRCDRequest{Create: r.Create, Exclusive: r.Exclusive}
	if r.HasFile {
		files, err := c.fileSocket.take()
		defer c.fileSocket.close(files...)
		if err != nil {
			return c.fail(m, err)
		}
		request.File = passed(files[0])
	}
	grant, err := provider.Do(c.session, provider.OpenXRCD, request)
	return answer(c, proto.OpenXRCD.Untyped, m, &grant, err)
}

// passed is a file that was passed, for who looks at its descriptor.
type passed int

// SyscallConn implements syscall.Conn.
func (p passed) SyscallConn() (syscall.RawConn, error) { return p, nil }

// Control implements syscall.RawConn.
func (p passed) Control(f func(fd uintptr)) error {
	f(uintptr(p))
	return nil
}

// Read implements syscall.RawConn.
func (p passed) Read(func(fd uintptr) (done bool)) error { return unix.EOPNOTSUPP }

// Write implements syscall.RawConn.
func (p passed) Write(func(fd uintptr) (done bool)) error { return unix.EOPNOTSUPP }
