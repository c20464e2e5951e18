// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// FileSocket is a socket by which a client passes a file for the next command: that of an XRC domain, or of memory. It is
// separate from the connection's, which accepts no descriptors (rights.go). After the command the file is closed. The
// client chooses the file, and its last close may block (blocking.go), so a connection has one such close at a time.
//
// The methods must not be called at the same time.
type FileSocket struct {
	place  *Place
	fd     int           // the service's end; 0: not open
	closed chan struct{} // closed when the file that was passed before is; nil: there was none
}

// NewFileSocket returns the file socket of a connection. It is not open.
func NewFileSocket(place *Place) *FileSocket { return &FileSocket{place: place} }

const (
	// fileSocketDescriptors is what passing a file takes: the service's end, the file, and another file beside it.
	fileSocketDescriptors = 3
	// fileSocketWait is how long Open waits for the close of the file that was passed before.
	fileSocketWait = 5 * time.Second
)

// Open makes the socket, and returns the client's end, which the caller closes.
func (s *FileSocket) Open() (end int, err error) {
	s.Close()
	of := s.place.quota
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

// Close closes the socket with all files in it, and the files that Take has returned. The descriptors and the connection
// are charged to the user until the closes have returned.
func (s *FileSocket) Close(files ...int) {
	if s.fd == 0 {
		return
	}
	fd, closed := s.fd, make(chan struct{})
	s.fd, s.closed = 0, closed
	_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	s.place.Block(func() {
		proto.CloseAll(append(files, fd))
		s.place.quota.GiveDescriptors(fileSocketDescriptors)
		close(closed)
	})
}

// Take returns descriptors of the files that were passed, at least one. The caller hands them to Close. The message stays in
// the socket, which thereby keeps all files: the kernel would close those for which there is no room within the call.
func (s *FileSocket) Take() ([]int, error) {
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
