// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/server"
	"github.com/roced/roced/verbs/server/memory"
	"golang.org/x/sys/unix"
)

// findService returns the socket of the service to use, or "" if none exists.
func (o *options) findService() (string, error) {
	if o.network != "" {
		return "", nil
	}
	for _, named := range []string{o.socket, daemon.NamedSocket()} {
		if named != "" {
			path, err := filepath.Abs(named) // the program may change its directory
			if err == nil {
				_, err = client.Devices(path)
			}
			return path, err
		}
	}
	for _, path := range []string{o.installed, loopback.Socket()} {
		if path != o.installed && !loopback.IsOwn(path) {
			continue
		}
		_, err := client.Devices(path)
		switch {
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ECONNREFUSED):
			return "", fmt.Errorf("%w; use --network loopback to start a private service", err)
		}
	}
	return "", nil
}

// runWithPrivateService runs the program with a private service, which ends with it.
func (o *options) runWithPrivateService(p *program) (err error) {
	s, err := o.openService()
	if err != nil {
		return fmt.Errorf("private service: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p.socket = s.folder.socket()
	if err := errors.Join(memory.CheckKernel(), memory.CheckFileSize()); err != nil { // the program reports it with ROCED_DEBUG=1 only
		fmt.Fprintln(o.errOut, "roced: programs cannot open a device:", err)
	}
	err = p.run()
	if o.report {
		err = errors.Join(err, s.report(os.Stderr))
	}
	return err
}

// privateService is a service for one program and its children.
type privateService struct {
	folder  folder
	network network
	server  *server.Server
	serving chan error
}

func (o *options) openService() (s *privateService, err error) {
	s = &privateService{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.folder, err = newFolder(o.guarded); err != nil {
		return s, err
	}
	if s.network, err = o.openNetwork(); err != nil {
		return s, err
	}
	if s.server, err = server.New(server.Config{Devices: s.network.Sources(), PrivilegedGroup: -1, Log: o.log}); err != nil {
		return s, err
	}
	listener, err := net.Listen("unixpacket", s.folder.socket())
	if err != nil {
		return s, err
	}
	s.serving = make(chan error, 1)
	go func() { s.serving <- s.server.Serve(listener) }()
	return s, nil
}

// Close ends the service and removes its directory.
func (s *privateService) Close() (err error) {
	if s.server != nil {
		err = s.server.Close()
	}
	if s.serving != nil {
		<-s.serving
	}
	if s.network != nil {
		err = errors.Join(err, s.network.Close())
	}
	return errors.Join(err, s.folder.remove())
}
