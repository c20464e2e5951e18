// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// Service is the service with its socket at Path. Each request uses a new connection, so that a restart of the service
// needs no special handling.
type Service struct{ Path string }

// timeout is the timeout of a request, for a service that does not respond.
const timeout = 10 * time.Second

// AddSocket creates the socket of a container unless it exists. Errors unwrap to verbs.ErrLimit if the service has too
// many sockets, and to verbs.ErrPermission if the caller is neither root nor the service's user.
func (s Service) AddSocket(ctx context.Context, name string) (path string, err error) {
	socket, err := request(ctx, s.Path, proto.AddSocket, proto.Socket{Name: name})
	if err != nil {
		return "", fmt.Errorf("create socket %s: %w", name, err)
	}
	return socket.Path, nil
}

// RemoveSocket removes a socket, and closes its connections. It returns no error if the socket does not exist.
func (s Service) RemoveSocket(ctx context.Context, name string) error {
	_, err := request(ctx, s.Path, proto.RemoveSocket, proto.Socket{Name: name})
	if err != nil && !errors.Is(err, verbs.ErrInvalid) { // it does not exist
		return fmt.Errorf("remove socket %s: %w", name, err)
	}
	return nil
}

// Devices returns the names of the service's devices.
func (s Service) Devices(ctx context.Context) ([]string, error) {
	c, err := dial(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.devices, nil
}

// connection is a connection to the service after the handshake.
type connection struct {
	socket  *net.UnixConn
	conn    *proto.Conn
	stop    func() bool
	devices []string
	lastID  uint32
}

func dial(ctx context.Context, path string) (*connection, error) {
	deadline := time.Now().Add(timeout)
	socket, err := proto.Dial(ctx, path, deadline)
	if err != nil {
		return nil, fmt.Errorf("reach roced's service at %s: %w", path, err)
	}
	_ = socket.SetDeadline(deadline)
	c := &connection{socket: socket, conn: proto.NewConn(socket, true)}
	c.stop = context.AfterFunc(ctx, func() { _ = socket.Close() })
	welcome, err := execute(c, proto.Hello, proto.HelloRequest{Magic: proto.Magic, Oldest: proto.OldestVersion, Newest: proto.Version})
	if err != nil {
		c.close()
		return nil, fmt.Errorf("handshake with roced's service at %s: %w", path, err)
	}
	c.devices = welcome.Devices
	return c, nil
}

func (c *connection) close() {
	c.stop()
	_ = c.socket.Close()
}

// request executes a command on a new connection.
func request[Q, G any](ctx context.Context, path string, command proto.Command[Q, G], r Q) (grant G, err error) {
	c, err := dial(ctx, path)
	if err != nil {
		return grant, err
	}
	defer c.close()
	return execute(c, command, r)
}

// execute sends a command and returns its response.
func execute[Q, G any](c *connection, command proto.Command[Q, G], r Q) (grant G, err error) {
	c.lastID++
	packet, err := command.EncodeRequest(c.lastID, &r)
	if err != nil {
		return grant, err
	}
	if err := c.conn.Send(packet); err != nil {
		return grant, err
	}
	m, descriptors, err := c.conn.Receive()
	proto.CloseAll(descriptors) // responses to these commands have no descriptors
	switch {
	case err != nil:
		return grant, err
	case m.Kind == proto.Failure || m.Kind == proto.Ended:
		cause, err := proto.DecodeFailure(m.Body)
		return grant, errors.Join(cause, err)
	case m.Kind != proto.Reply || m.Code != command.Number || m.ID != c.lastID:
		return grant, fmt.Errorf("%w: response to another command", proto.ErrMalformed)
	}
	return command.DecodeGrant(m.Body, nil)
}
