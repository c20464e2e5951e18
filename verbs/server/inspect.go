package server

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// nextEvents waits for events of the service, in a goroutine of its own.
func nextEvents(c *connection, m proto.Message) error {
	if _, err := proto.NextEvents.DecodeRequest(m.Body); err != nil {
		return err
	}
	if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := c.view.Monitor(); err != nil {
		return c.fail(m, err)
	}
	return c.runInBackground(proto.NextEvents.Untyped, m, func(ctx context.Context, grant any) (err error) {
		*grant.(*proto.Events), err = c.view.NextEvents(ctx)
		return err
	})
}

// startCapture hands the end of a stream of packets over.
func startCapture(c *connection, m proto.Message) error {
	r, err := proto.StartCapture.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	end, err := c.view.StartCapture(r)
	if err != nil {
		return c.fail(m, err)
	}
	defer unix.Close(end)
	return c.reply(proto.StartCapture.Untyped, m.ID, &proto.None{}, end)
}

// addSocket makes the socket of a container.
func addSocket(c *connection, r proto.Socket) (proto.Socket, error) {
	if err := c.mayManage(); err != nil {
		return r, err
	}
	path, err := c.server.AddSocket(r.Name)
	return proto.Socket{Name: r.Name, Path: path}, err
}

// removeSocket removes the socket of a container.
func removeSocket(c *connection, r proto.Socket) (none proto.None, err error) {
	if err := c.mayManage(); err != nil {
		return none, err
	}
	return none, c.server.RemoveSocket(r.Name)
}

func (c *connection) mayManage() error {
	if !c.peer.SeesAll() {
		return fmt.Errorf("%w: sockets of containers are made by root and the service's user", verbs.ErrPermission)
	}
	return nil
}
