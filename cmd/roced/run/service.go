// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/cmd/roced/run/metrics"
	"github.com/roced/roced/cmd/roced/run/namespaces"
	"github.com/roced/roced/cmd/roced/run/systemd"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server"
)

// service is the running service.
type service struct {
	config    *config.Config
	load      func() (*config.Config, error) // reads the configuration again
	file      string                         // its path
	passed    systemd.Sockets
	level     *slog.LevelVar
	log       *slog.Logger
	notify    *systemd.Notifier
	server    *server.Server
	devices   *devices
	network   *loopback.Network  // nil without --loopback
	elsewhere *namespaces.Device // nil if cards in other namespaces are disabled
	metrics   *metrics.Server
	own       *socket       // socket for programs, unless systemd passed one
	serving   chan error    // result of Serve on each socket
	serves    int           // number of sockets being served
	changed   chan struct{} // signalled when the state of a device may have changed
	ending    atomic.Bool   // the service is stopping
	restoring bool          // sockets of containers are being restored; no program is served yet
	removing  sync.Mutex    // held while a discarded directory is removed
	status    string        // last reported status
}

func newService(c *config.Config, o *options, passed systemd.Sockets, level *slog.LevelVar, log *slog.Logger) (*service, error) {
	network, err := o.memory.open(log)
	if err != nil {
		return nil, cli.Usage(err)
	}
	s := &service{
		config: c, load: o.load, file: o.path(), passed: passed, level: level, log: log, notify: systemd.NewNotifier(log),
		network: network, serving: make(chan error), changed: make(chan struct{}, 1),
	}
	if s.server, err = newServer(c, log, s.listenFor); err != nil {
		return nil, err
	}
	s.devices = newDevices(s.server, c.StateDir, log, s.stateChanged)
	s.metrics = metrics.NewServer(s.metered, s.server, s.config.Metrics.Hosts, log)
	return s, nil
}

// stateChanged makes the loop report the state of the devices.
func (s *service) stateChanged() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run runs the service from start to stop.
func (s *service) run(ctx context.Context) error {
	debug.SetMaxThreads(maxThreads)
	hangups, stop := hangups() // before Ready, because SIGHUP may arrive immediately after
	defer stop()
	err := s.start(ctx)
	if err == nil {
		err = s.loop(ctx, hangups)
	}
	s.notify.Stopping()
	s.logEnd(ctx, err)
	return errors.Join(err, s.stop())
}

// logEnd logs the end of the service. The caller reports the error itself.
func (s *service) logEnd(ctx context.Context, failed error) {
	switch {
	case failed == nil:
		s.log.Info("stopping", "cause", context.Cause(ctx), "clients", s.server.Clients())
	case s.status != "": // empty before start has succeeded
		s.log.Info("stopping after a failure", "clients", s.server.Clients())
	}
}

// start opens the devices and the sockets. A missing interface does not prevent the service of other devices.
func (s *service) start(ctx context.Context) error {
	if err := s.offer(); err != nil {
		return err
	}
	for _, d := range s.config.Devices {
		if err := s.devices.add(ctx, d); err != nil {
			return err
		}
	}
	if err := s.listen(); err != nil {
		return err
	}
	s.status = s.describe()
	s.log.Info("ready", "status", s.status)
	s.notify.Ready(s.status)
	return nil
}

// offer adds the sources that are not devices of an interface: the in-memory network and other namespaces.
func (s *service) offer() (err error) {
	var list []server.Source
	if s.network != nil {
		list = s.network.Sources()
	}
	if c := s.config.Namespaces; c.Device != "" {
		if s.elsewhere, err = namespaces.New(c, s.log, hca.WithStateDir(s.config.StateDir)); err != nil {
			return err
		}
		list = append(list, s.elsewhere)
	}
	return s.devices.offer(list)
}

// listen starts serving programs and, if configured, metrics.
func (s *service) listen() error {
	if len(s.passed.Programs) == 0 {
		var err error
		if s.own, err = listenUnix("unixpacket", s.config.Socket); err != nil {
			return err
		}
		s.passed.Programs = []net.Listener{s.own}
	}
	s.addSockets() // before programs can connect
	for _, l := range s.passed.Programs {
		s.log.Info("listening", "socket", l.Addr())
		s.serves++
		go func() { s.serving <- s.server.Serve(l) }()
	}
	for _, l := range s.passed.Metrics {
		s.metrics.Serve(l)
	}
	return s.listenForMetrics(s.config.Metrics.Listen)
}

// stop closes the server first, so that programs are notified while their device exists, then the devices.
func (s *service) stop() error {
	s.ending.Store(true)
	err := errors.Join(s.metrics.Close(), s.server.Close())
	for range s.serves {
		<-s.serving
	}
	s.devices.close()
	if s.elsewhere != nil {
		s.elsewhere.Close()
	}
	if s.network != nil {
		err = errors.Join(err, s.network.Close())
	}
	return err
}

// describe returns the state of the service as a line.
func (s *service) describe() string {
	parts := []string{cli.Several(uint64(s.server.Clients()), "client")}
	for _, d := range s.devices.list() {
		parts = append(parts, d.State().Text)
	}
	switch {
	case s.elsewhere != nil:
		parts = append(parts, cli.Several(uint64(len(s.elsewhere.Cards())), "card")+" in other network namespaces")
	case s.network != nil:
		parts = append(parts, "in-memory network")
	case len(parts) == 1:
		parts = append(parts, "no device: add one to "+s.file+", then reload")
	}
	return strings.Join(parts, "; ")
}

// check returns an error unless the server and the devices respond.
func (s *service) check() (err error) {
	s.server.Clients()
	for _, d := range s.devices.list() {
		err = errors.Join(err, d.Check())
	}
	return err
}
