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

// Connection is one to the service, for one goroutine.
type Connection struct {
	Devices []string // the service's
	path    string
	socket  *net.UnixConn
	conn    *proto.Conn
	lastID  uint32
	stop    func() bool  // ending with the context
	ended   func() error // why it has ended with the context; nil if it has not
}

// greetTimeout is how long the service may take to answer.
const greetTimeout = 10 * time.Second

// Dial connects to the service whose socket is at path. While others wait to connect, it waits in turn. When ctx is done,
// the connection ends, and callers that wait get its cause.
func Dial(ctx context.Context, path string) (*Connection, error) {
	deadline := time.Now().Add(greetTimeout)
	socket, err := proto.Dial(ctx, path, deadline)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("reach the service at %s: %w; %s", path, err, hint(path, err))
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
	welcome, err := ask(c, proto.Hello, proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version, Newest: proto.Version})
	switch {
	case c.ended() != nil:
		return c.ended()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the service at %s does not answer: %s (%w)", c.path, unit.Answering(), err)
	case err != nil:
		return fmt.Errorf("greet the service at %s: %w", c.path, err)
	}
	c.Devices = welcome.Devices
	return c.socket.SetDeadline(time.Time{})
}

// hint says what to do when the socket cannot be reached.
func hint(path string, err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return "its group may use it: ls -l " + path
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return unit.Running() + "; --socket names another socket"
	case errors.Is(err, unix.EAGAIN):
		return "too many wait for it to answer: " + unit.Answering()
	}
	return "is it a socket of roced?"
}

// Close ends the connection.
func (c *Connection) Close() error {
	c.stop()
	if err := c.socket.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// SeesAll says whether the service shows what all users have, and not only what is this user's: to root, and to its own
// user.
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

// Choose gives the names of the devices to look at: all, or the one that is named.
func (c *Connection) Choose(name string) ([]string, error) {
	if name == "" {
		return c.Devices, nil
	}
	for _, d := range c.Devices {
		if d == name {
			return []string{name}, nil
		}
	}
	return nil, fmt.Errorf("%w: the service at %s has no device %q; it has %q", verbs.ErrInvalid, c.path, name, c.Devices)
}

// ask gives a command and waits for its answer.
func ask[Q, G any](c *Connection, command proto.Command[Q, G], request Q) (grant G, err error) {
	grant, descriptors, err := askRights(c, command, request)
	proto.CloseAll(descriptors) // there should be none
	return grant, err
}

// askRights is ask for a command whose answer carries descriptors.
func askRights[Q, G any](c *Connection, command proto.Command[Q, G], request Q) (grant G, descriptors []int, err error) {
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
	if err := c.conn.Send(packet); err != nil && !errors.Is(err, unix.EPIPE) { // then it has said why
		return grant, nil, fmt.Errorf("the service: %w", err)
	}
	m, descriptors, err := c.conn.Receive()
	switch {
	case errors.Is(err, io.EOF):
		return grant, nil, fmt.Errorf("%w: the service has closed the connection", verbs.ErrHost)
	case err != nil:
		return grant, nil, fmt.Errorf("the service: %w", err)
	case m.Kind == proto.Failure || m.Kind == proto.Ended:
		cause, err := proto.DecodeFailure(m.Body)
		return grant, nil, errors.Join(cause, err)
	case m.Kind != proto.Reply || m.Code != command.Number || m.ID != c.lastID:
		return grant, nil, fmt.Errorf("%w: an answer to another command", proto.ErrMalformed)
	}
	grant, err = command.DecodeGrant(m.Body, nil)
	return grant, descriptors, err
}
