// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/roced/roced/internal/unit"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// Connection is a connection to the service, for one goroutine.
type Connection struct {
	Devices []string // of the service
	path    string
	socket  *net.UnixConn
	conn    *proto.Conn
	lastID  uint32
	stop    func() bool  // cancels closing by the context
	ended   func() error // cause of the context; nil if it is not done
}

// Dial connects to the service whose socket is at path. If the backlog is full, it waits. When ctx is done,
// the connection is closed, and waiting callers return its cause.
func Dial(ctx context.Context, path string) (*Connection, error) {
	deadline := time.Now().Add(proto.ServiceTimeout)
	socket, err := proto.Dial(ctx, path, deadline)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("connect to the service at %s: %w; %s", path, err, hint(path, err))
	}
	c := &Connection{path: path, socket: socket, conn: proto.NewConn(socket, true), ended: func() error { return context.Cause(ctx) }}
	_ = socket.SetDeadline(deadline)
	c.stop = context.AfterFunc(ctx, func() { _ = socket.Close() })
	if err := c.greet(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Connection) greet() error {
	welcome, err := call(c, proto.Hello, proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version, Newest: proto.Version})
	switch {
	case c.ended() != nil:
		return c.ended()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the service at %s does not respond: %s (%w)", c.path, unit.Answering(), err)
	case err != nil:
		return fmt.Errorf("start the session with the service at %s: %w", c.path, err)
	}
	c.Devices = welcome.Devices
	return c.socket.SetDeadline(time.Time{})
}

// hint returns the remedy for a failed connection.
func hint(path string, err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return "only its group has access: ls -l " + path
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return unit.Running() + "; use --socket to set another socket"
	case errors.Is(err, unix.EAGAIN):
		return "too many programs are waiting: " + unit.Answering()
	}
	return "check that it is a socket of roced"
}

// Close closes the connection.
func (c *Connection) Close() error {
	c.stop()
	if err := c.socket.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// SeesAll reports whether the service lists the objects of all users: to root and to the user of the service.
func (c *Connection) SeesAll() bool {
	if os.Geteuid() == 0 {
		return true
	}
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	_ = raw.Control(func(fd uintptr) {
		service, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		own = err == nil && int(service.Uid) == os.Geteuid()
	})
	return own
}

// Choose returns the selected devices: all, or the one with the name.
func (c *Connection) Choose(name string) ([]string, error) {
	if name == "" {
		return c.Devices, nil
	}
	for _, d := range c.Devices {
		if d == name {
			return []string{name}, nil
		}
	}
	return nil, fmt.Errorf("%w: the service at %s has no device %q (available: %q)", verbs.ErrInvalid, c.path, name, c.Devices)
}

// call sends a command and waits for its response.
func call[Q, G any](c *Connection, command proto.Command[Q, G], request Q) (grant G, err error) {
	grant, descriptors, err := callRights(c, command, request)
	proto.CloseAll(descriptors) // none are expected
	return grant, err
}

// callRights is call for a command whose response carries descriptors.
func callRights[Q, G any](c *Connection, command proto.Command[Q, G], request Q) (grant G, descriptors []int, err error) {
	defer func() {
		if err != nil && c.ended() != nil {
			err = c.ended()
		}
	}()
	c.lastID++
	packet, err := command.EncodeRequest(c.lastID, &request)
	if err != nil {
		return grant, nil, err
	}
	if err := c.conn.Send(packet); err != nil && !errors.Is(err, unix.EPIPE) { // after EPIPE, the service has sent the cause
		return grant, nil, fmt.Errorf("send to the service: %w", err)
	}
	m, descriptors, err := c.conn.Receive()
	switch {
	case errors.Is(err, io.EOF):
		return grant, nil, fmt.Errorf("%w: the service closed the connection", verbs.ErrHost)
	case err != nil:
		return grant, nil, fmt.Errorf("receive from the service: %w", err)
	case m.Kind == proto.Failure || m.Kind == proto.Ended:
		cause, err := proto.DecodeFailure(m.Body)
		return grant, nil, errors.Join(cause, err)
	case m.Kind != proto.Reply || m.Code != command.Number || m.ID != c.lastID:
		return grant, nil, fmt.Errorf("%w: response to another command", proto.ErrMalformed)
	}
	grant, err = command.DecodeGrant(m.Body, nil)
	return grant, descriptors, err
}
