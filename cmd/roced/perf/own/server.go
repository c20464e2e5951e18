// SPDX-License-Identifier: Apache-2.0

package own

import (
	"context"
	"net"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/options"
)

// server serves clients of perf one after another.
type server struct {
	device   *card.Device
	listener net.Listener
	options  *options.Options
}

// RunServer serves clients until ctx is done, and then returns nil. With Once it serves one client, and returns an
// error if ctx ends first.
func RunServer(ctx context.Context, d *card.Device, namespace string, o *options.Options) (err error) {
	s := &server{device: d, options: o}
	if s.listener, err = meet.Listen(ctx, namespace, o.TCPPort); err != nil {
		return err
	}
	defer s.listener.Close()
	defer context.AfterFunc(ctx, func() { s.listener.Close() })()
	err = meet.Announce(d, o.Out, s.listener.Addr(), "clients", o.GIDIndex)
	for err == nil {
		err = s.acceptOne(ctx)
		switch {
		case ctx.Err() != nil && o.Once:
			return context.Cause(ctx)
		case ctx.Err() != nil:
			return nil
		case o.Once:
			return err
		}
	}
	return err
}

// acceptOne waits for a client and serves it. The failure of one client does not end the server, except with Once.
func (s *server) acceptOne(ctx context.Context) error {
	conn, err := s.listener.Accept()
	if err != nil {
		return err
	}
	peer := conn.RemoteAddr()
	err = s.serve(ctx, conn)
	if err != nil && ctx.Err() == nil && !s.options.Once {
		s.options.Log.Error("client failed", "client", peer, "error", err)
		return nil
	}
	return err
}
