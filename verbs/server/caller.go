package server

import (
	"errors"
	"fmt"
	"os"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"golang.org/x/sys/unix"
)

// A Source may be another device for each network namespace. While there is such a one, a program has to do only with
// devices of its own namespace: those of the others belong to the service's.

// Caller is whom a device is for: the user, and the network namespace, of the socket that has connected.
type Caller struct {
	UID, Owner uint32 // as of the socket, and whose uid that is
	Namespace  Namespace
	// Path is a file of the namespace for as long as the call lasts.
	Path string

	file *os.File // keeps the namespace, so that its number is nobody else's
}

// Namespace identifies a network namespace while somebody keeps it.
type Namespace struct{ Device, Inode uint64 }

// ofCaller is a Source that is another device for each network namespace.
type ofCaller interface {
	NewSessionOf(*Caller, hca.SessionConfig) (*hca.Session, error)
	QueryDeviceOf(*Caller) (verbs.DeviceAttr, error)
	CardOf(*Caller) *hca.Card // that is open; else nil
}

// ErrUnknownCaller is that the service cannot tell in which network namespace a program is.
var ErrUnknownCaller = fmt.Errorf("%w: the caller's network namespace is not known", verbs.ErrPermission)

// CanTellCallers checks that the service can have the kernel return the network namespace of a socket (SIOCGSKNS).
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

// namespaceOf opens the network namespace of an accepted socket. It is the one in which the other end was made, whichever
// namespace its process has entered since. Being able to speak over a socket says nothing about the process.
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

// identifyNamespace says which a file is of.
func identifyNamespace(path string) (n Namespace, err error) {
	var stat unix.Stat_t
	err = unix.Stat(path, &stat)
	return Namespace{stat.Dev, stat.Ino}, err
}

// findCaller finds out whom the connection is of, once.
func (c *connection) findCaller() (*Caller, error) {
	if c.caller != nil {
		return c.caller, nil
	}
	raw, err := c.socket.SyscallConn()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caller = &Caller{UID: c.peer.uid, Owner: c.peer.owner, Namespace: id, Path: path, file: file}
	return c.caller, nil
}

// sameNamespace says whether two connections are known to be of programs in one namespace.
func (c *connection) sameNamespace(other *connection) bool {
	a, b := c.whose(), other.whose()
	return a != nil && b != nil && a.Namespace == b.Namespace
}

// whose is what findCaller has found, nil if it was not asked.
func (c *connection) whose() *Caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caller
}

// findOther is findCaller of a program that is elsewhere than the service: its interfaces are for devices of their own.
func (c *connection) findOther() (*Caller, error) {
	caller, err := c.findCaller()
	if err == nil && caller.Namespace == c.server.namespace {
		err = fmt.Errorf("%w: this device is for programs in other network namespaces than the service's", verbs.ErrInvalid)
	}
	return caller, err
}

// close ends what findCaller began, if it was called.
func (c *Caller) close() {
	if c != nil {
		_ = c.file.Close()
	}
}

// confine finds out whether the peer is elsewhere than the service, where there is a device for such: then it sees
// nothing of others, whatever its uid.
func (c *connection) confine() {
	c.peer.confined = c.peer.door != ""
	if !c.server.tellsCallers() {
		return
	}
	caller, err := c.findCaller()
	if err != nil {
		c.server.complain(c.log, c.peer.party(), "a program sees no devices", err)
	}
	c.peer.confined = c.peer.confined || err != nil || caller.Namespace != c.server.namespace
}

// tellsCallers says whether there is a device for programs in other network namespaces.
func (s *Server) tellsCallers() bool {
	for _, d := range s.sources() {
		if _, is := d.(ofCaller); is {
			return true
		}
	}
	return false
}

// cardOf is what describes a device: itself, or the card of the caller's namespace, if that is open.
func (c *connection) cardOf(device Source) (any, error) {
	d, is := device.(ofCaller)
	if !is {
		return device, nil
	}
	caller, err := c.findOther()
	if err != nil {
		return nil, &NoCardError{Device: device.Name(), Cause: err}
	}
	if card := d.CardOf(caller); card != nil {
		return card, nil
	}
	return nil, &NoCardError{Device: device.Name(), Cause: errNoProgram}
}

// errNoProgram is why there is no card of a namespace.
var errNoProgram = errors.New("it is opened for the first program in this network namespace")

// sources are the devices that the client may know of.
func (c *connection) sources() []Source {
	all := c.server.sources()
	if !c.peer.confined || !c.server.tellsCallers() {
		return all
	}
	caller := c.whose()
	if caller == nil {
		return nil
	}
	var own []Source
	for _, d := range all {
		if _, is := d.(ofCaller); is == (caller.Namespace != c.server.namespace) {
			own = append(own, d)
		}
	}
	return own
}

// find finds a device that the client may know of.
func (c *connection) find(name string) (Source, error) { return deviceOf(c.sources(), name) }
