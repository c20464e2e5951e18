// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"errors"
	"fmt"
	"os"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Caller identifies the user and the network namespace of a connection, for devices that differ between namespaces.
type Caller struct {
	UID, Owner uint32 // the socket's uid, and the user that owns it
	Namespace  Namespace
	// Path is a file of the namespace. It is valid during the call that passes the Caller.
	Path string

	file *os.File // keeps the namespace, so that its number is not reused
}

// Namespace identifies a network namespace while a process or file keeps it.
type Namespace struct{ Device, Inode uint64 }

// ErrUnknownCaller is returned when the service cannot determine the network namespace of a program.
var ErrUnknownCaller = fmt.Errorf("%w: the caller's network namespace is not known", verbs.ErrPermission)

// CanTellCallers returns an error if the kernel does not let the service query the network namespace of a socket
// (SIOCGSKNS).
func CanTellCallers() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	file, err := namespaceOf(pair[0])
	if err != nil {
		return fmt.Errorf("%w: cards in callers' network namespaces: %w", verbs.ErrUnsupported, err)
	}
	return file.Close()
}

// namespaceOf opens the network namespace of an accepted socket: the one in which the other end was made, even if its
// process has entered another one since. The process that speaks over a socket need not be the one that made it.
func namespaceOf(socket int) (*os.File, error) {
	fd, err := unix.IoctlRetInt(socket, unix.SIOCGSKNS)
	if errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("%w: it needs CAP_NET_ADMIN in the user namespace that owns the network namespace", err)
	}
	if err != nil {
		return nil, os.NewSyscallError("ioctl SIOCGSKNS", err)
	}
	return os.NewFile(uintptr(fd), "network namespace"), nil
}

// OwnNamespace returns the network namespace of this thread.
func OwnNamespace() (Namespace, error) { return identifyNamespace("/proc/thread-self/ns/net") }

// identifyNamespace returns the namespace of a file.
func identifyNamespace(path string) (n Namespace, err error) {
	var stat unix.Stat_t
	err = unix.Stat(path, &stat)
	return Namespace{stat.Dev, stat.Ino}, err
}

// Caller returns the user and network namespace of the connection. The first successful call finds them out.
func (p *Peer) Caller() (*Caller, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.caller != nil {
		return p.caller, nil
	}
	raw, err := p.socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	var file *os.File
	var failed error
	if err := raw.Control(func(fd uintptr) { file, failed = namespaceOf(int(fd)) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknownCaller, failed)
	}
	path := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	id, err := identifyNamespace(path)
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%w: %w", ErrUnknownCaller, err)
	}
	p.caller = &Caller{UID: p.UID, Owner: p.Owner, Namespace: id, Path: path, file: file}
	return p.caller, nil
}

// KnownCaller returns the result of Caller, nil if that has not succeeded yet.
func (p *Peer) KnownCaller() *Caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.caller
}

// sharesNamespace reports whether two peers are known to be in one network namespace.
func (p *Peer) sharesNamespace(other *Peer) bool {
	a, b := p.KnownCaller(), other.KnownCaller()
	return a != nil && b != nil && a.Namespace == b.Namespace
}

// Close releases the network namespace that Caller has found, if it was called.
func (p *Peer) Close() error {
	if c := p.KnownCaller(); c != nil {
		return c.file.Close()
	}
	return nil
}
