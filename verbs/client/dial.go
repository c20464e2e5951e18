// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/unit"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// DefaultPath is the service's socket.
const DefaultPath = "/run/roced/roced.sock"

// Devices returns the names of the service's devices. Its errors are those of Dial.
func Devices(path string) ([]string, error) {
	a, err := connect(context.Background(), path)
	if err != nil {
		return nil, err
	}
	return a.devices, a.socket.Close()
}

// Dial opens a device of the service whose socket is at path. An empty name means the service's only device. While
// other programs are connecting, Dial waits its turn.
//
// verbs.ErrHost if there is no service, it does not respond within 10 s, access to the socket is denied, or the user
// connects too often (250 times a second); verbs.ErrInvalid if it has no such device; verbs.ErrLimit;
// verbs.ErrUnsupported for a service of another release.
func Dial(path, device string) (*Client, error) {
	return DialContext(context.Background(), path, device)
}

// DialContext is Dial that ends when ctx is done, with ctx's cause as the error. An open session is not affected by
// ctx.
func DialContext(ctx context.Context, path, device string) (*Client, error) {
	a, err := connect(ctx, path)
	if err != nil {
		return nil, err
	}
	if device == "" && len(a.devices) == 1 {
		device = a.devices[0]
	}
	c, err := a.open(device)
	if err != nil {
		return nil, a.fail(fmt.Errorf("open %q at %s: %w", device, path, err))
	}
	return c, nil
}

// attempt is a connection without a session. It ends when its context is done.
type attempt struct {
	ctx     context.Context
	stop    func() bool // ends the effect of the context
	path    string
	socket  *net.UnixConn
	conn    *proto.Conn
	devices []string
}

// connect connects and exchanges the greeting.
func connect(ctx context.Context, path string) (*attempt, error) {
	deadline := time.Now().Add(proto.ServiceTimeout)
	socket, err := proto.Dial(ctx, path, deadline)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("reach the service at %s: %w", path, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("%w: reach the service at %s: %w; %s", verbs.ErrHost, path, err, hint(path, err))
	}
	_ = socket.SetDeadline(deadline)
	a := &attempt{ctx: ctx, path: path, socket: socket, conn: proto.NewConn(socket, true)}
	a.stop = context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(0, 1)) })
	welcome, _, err := first(a.conn, proto.Hello, &proto.HelloRequest{Magic: proto.Magic, Oldest: proto.OldestVersion, Newest: proto.Version})
	if err != nil {
		return nil, a.fail(fmt.Errorf("greet the service at %s: %w", path, err))
	}
	a.devices = welcome.Devices
	return a, nil
}

// fail ends the attempt, and returns the reason of its failure.
func (a *attempt) fail(err error) error {
	a.stop()
	_ = a.socket.Close()
	switch {
	case a.ctx.Err() != nil:
		return fmt.Errorf("reach the service at %s: %w", a.path, context.Cause(a.ctx))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w; it does not respond: %s", err, unit.Answering())
	}
	return err
}

// settle ends the effect of the context on the connection.
func (a *attempt) settle() error {
	if !a.stop() {
		return context.Cause(a.ctx)
	}
	return a.socket.SetDeadline(time.Time{})
}

// hint returns the remedy for a failed connection to the socket.
func hint(path string, err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return "only its group has access: ls -l " + path
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return unit.Running()
	case errors.Is(err, unix.EAGAIN):
		return "other programs wait to connect too, and the service does not respond: " + unit.Answering()
	}
	return "is it a socket of roced?"
}

// first executes one of the first commands, before there is a goroutine that reads.
func first[Q, G any](conn *proto.Conn, command proto.Command[Q, G], request *Q) (grant G, descriptors []int, err error) {
	packet, err := command.EncodeRequest(0, request)
	if err != nil {
		return grant, nil, err
	}
	if err := conn.Send(packet); err != nil && !errors.Is(err, unix.EPIPE) { // on EPIPE the service has sent the reason
		return grant, nil, fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	m, descriptors, err := conn.Receive()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET):
		return grant, nil, fmt.Errorf("%w: the service has closed the connection: it is ending, or this user connects too often; try again later", verbs.ErrHost)
	case err != nil:
		return grant, nil, fmt.Errorf("%w: %w", verbs.ErrHost, err)
	case m.Kind != proto.Reply || m.Code != command.Number:
		err = failureOf(m)
	default:
		if grant, err = command.DecodeGrant(m.Body, nil); err != nil {
			err = fmt.Errorf("%w: %w", verbs.ErrHost, err)
		}
	}
	if err != nil {
		proto.CloseAll(descriptors)
		return grant, nil, err
	}
	return grant, descriptors, nil
}

// failureOf returns the error in a message that should be a Failure or Ended.
func failureOf(m proto.Message) error {
	if m.Kind != proto.Failure && m.Kind != proto.Ended {
		return fmt.Errorf("%w: %w: kind %d", verbs.ErrHost, proto.ErrMalformed, m.Kind)
	}
	cause, err := proto.DecodeFailure(m.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	return cause
}

// open creates the session.
func (a *attempt) open(device string) (*Client, error) {
	opened, ends, err := first(a.conn, proto.OpenDevice, &proto.OpenRequest{Device: device})
	if err == nil && len(ends) != 3 {
		proto.CloseAll(ends)
		err = fmt.Errorf("%w: %w: %d descriptors, not 3", verbs.ErrHost, proto.ErrMalformed, len(ends))
	}
	if err != nil {
		return nil, err
	}
	signals, err := newSignals(ends[1], ends[2])
	if err != nil {
		proto.CloseAll(ends[:1])
		return nil, err
	}
	memory, doorbell, err := share(ends[0], opened)
	if err == nil {
		if err = a.settle(); err != nil {
			memory.unmap()
		}
	}
	if err != nil {
		signals.close()
		return nil, err
	}
	c := newClient(a.conn, a.socket, device)
	c.memory, c.doorbell, c.signals = memory, doorbell, signals
	c.background.Go(c.receive)
	runtime.AddCleanup(c, shared.unmap, memory)
	return c, nil
}

// share maps the memory, and closes its descriptor.
func share(fd int, opened proto.Opened) (shared, *ring.Doorbell, error) {
	memory, err := mapShared(fd, opened.Size)
	_ = unix.Close(fd)
	if err != nil {
		return nil, nil, err
	}
	doorbell, err := memory.At(opened.Doorbell)
	if err == nil && len(doorbell) < ring.DoorbellSize {
		err = fmt.Errorf("%w: a doorbell of %d bytes", proto.ErrMalformed, len(doorbell))
	}
	if err != nil {
		memory.unmap()
		return nil, nil, fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	return memory, ring.NewDoorbell(doorbell), nil
}

func newClient(conn *proto.Conn, socket *net.UnixConn, device string) *Client {
	c := &Client{
		device: device, conn: conn, socket: socket,
		pending: map[uint32]chan answer{}, events: map[uint64]chan struct{}{}, cqs: map[provider.Handle]cq{},
		closing: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{}),
		waits: make(chan struct{}, maxWaits), reader: make(chan struct{}, 1), leading: make(chan struct{}, 1),
	}
	return c
}
