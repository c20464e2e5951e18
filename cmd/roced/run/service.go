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

// service is what roced run runs.
type service struct {
	config    *config.Config
	load      func() (*config.Config, error) // the configuration as it is now
	file      string                         // where it is
	passed    systemd.Sockets
	level     *slog.LevelVar
	log       *slog.Logger
	notify    *systemd.Notifier
	server    *server.Server
	devices   *devices
	network   *loopback.Network  // nil without --loopback
	elsewhere *namespaces.Device // nil unless programs get cards in their namespaces
	metrics   *metrics.Server
	own       *socket       // the programs' socket, if it is not systemd's
	serving   chan error    // what Serve has returned, on each socket
	serves    int           // on how many it has not
	changed   chan struct{} // the state of a device has
	ending    atomic.Bool   // the service is
	restoring bool          // sockets of containers are made again; no program is served yet
	removing  sync.Mutex    // held while a discarded folder is removed
	status    string        // as it was last told
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

// stateChanged has the loop look at the devices' state.
func (s *service) stateChanged() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run is the service's whole life.
func (s *service) run(ctx context.Context) error {
	debug.SetMaxThreads(maxThreads)
	hangups, stop := hangups() // one may come as soon as it is ready
	defer stop()
	err := s.start(ctx)
	if err == nil {
		err = s.loop(ctx, hangups)
	}
	s.notify.Stopping()
	s.sayWhy(ctx, err)
	return errors.Join(err, s.stop())
}

// sayWhy logs the end. A failure of its own is said last, by who called.
func (s *service) sayWhy(ctx context.Context, failed error) {
	switch {
	case failed == nil:
		s.log.Info("stopping", "cause", context.Cause(ctx), "clients", s.server.Clients())
	case s.status != "": // else it has not begun
		s.log.Info("stopping after a failure", "clients", s.server.Clients())
	}
}

// start opens all there is to open. A device whose interface is missing does not keep the others from
// being served.
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

// offer has the server offer what is no device of an interface here.
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

// listen accepts programs, and has metrics served if that is wanted.
func (s *service) listen() error {
	if len(s.passed.Programs) == 0 {
		var err error
		if s.own, err = listenUnix("unixpacket", s.config.Socket); err != nil {
			return err
		}
		s.passed.Programs = []net.Listener{s.own}
	}
	s.addSockets() // who finds the service finds these
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

// stop ends the programs first, so that they hear of it while there is a device, and then the rest.
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

// describe is the state of all, in a line.
func (s *service) describe() string {
	parts := []string{cli.Several(uint64(s.server.Clients()), "client")}
	for _, d := range s.devices.list() {
		parts = append(parts, d.State().Text)
	}
	switch {
	case s.elsewhere != nil:
		parts = append(parts, cli.Several(uint64(len(s.elsewhere.Cards())), "card")+" in other network namespaces")
	case s.network != nil:
		parts = append(parts, "a network in memory")
	case len(parts) == 1:
		parts = append(parts, "no device: name one in "+s.file+", then reload")
	}
	return strings.Join(parts, "; ")
}

// check asks everything whether it still answers.
func (s *service) check() (err error) {
	s.server.Clients()
	for _, d := range s.devices.list() {
		err = errors.Join(err, d.Check())
	}
	return err
}
