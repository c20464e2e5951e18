package run

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// loopbackFlags are those of a network in memory.
type loopbackFlags struct {
	on    bool
	pools []string
	hosts []string

	workers int
	capture string
	weather loopback.Weather
}

func (l *loopbackFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&l.on, "loopback", false, "a network in memory instead of interfaces: no privilege is needed")
	f.StringArrayVar(&l.hosts, "host", nil, "with --loopback: a `name`=address[,address] of a host; may be given several times")
	f.IntVar(&l.workers, "workers", 1, "`number` of workers of each --device and each --host, up to 8; each serves some of the programs that share it. An interface needs a queue for each; programs that share an XRC domain need one worker")
	f.StringSliceVar(&l.pools, "pool", loopback.DefaultPools, "with --loopback: `networks` that other hosts have addresses of")
	l.weather.Add(f, "with --loopback: ")
	f.StringVar(&l.capture, "capture", "", "with --loopback: `file` for the packets of all hosts, as pcapng; of other devices roced dump makes one")
}

// check finds flags that do not go together.
func (l *loopbackFlags) check(o *options) error {
	if l.on && (o.file != "" || o.devices != nil) {
		return errors.New("--loopback has no interface: leave out --config and --device")
	}
	if o.devices == nil && o.network.Network() != hca.NetworkAuto {
		return errors.New("--network is for the interfaces that --device names: name one, or write network = \"udp\" below [[device]] in the configuration")
	}
	if given := l.weather.Given(); !l.on && given != "" {
		return fmt.Errorf("--%s needs --loopback: add it", given)
	}
	if !l.on && l.capture != "" {
		return errors.New("--capture needs --loopback; of an interface's device roced dump makes one")
	}
	if err := l.checkWorkers(o); err != nil {
		return err
	}
	if !l.on && l.hosts != nil {
		return errors.New("--host needs --loopback: add it")
	}
	return nil
}

func (l *loopbackFlags) checkWorkers(o *options) error {
	switch {
	case l.workers < 1 || l.workers > hca.MaxWorkers:
		return fmt.Errorf("--workers %d: a host or an interface has 1 to %d", l.workers, hca.MaxWorkers)
	case l.workers == 1:
	case l.on && l.hosts == nil:
		return errors.New("--workers needs --host: other hosts on a network in memory have one program each, and one worker")
	case !l.on && o.devices == nil:
		return errors.New("--workers is for the interfaces that --device names: name one, or write workers below [[device]] in the configuration")
	case o.network.Network() == hca.NetworkUDP:
		return errors.New("--workers means nothing with --network udp: over UDP sockets a device has one worker; leave out one of the two")
	}
	return nil
}

// open makes the wire; nil without --loopback.
func (l *loopbackFlags) open(log *slog.Logger) (*loopback.Network, error) {
	if !l.on {
		return nil, nil
	}
	o, err := loopback.ParseOptions(l.pools, l.hosts)
	if err != nil {
		return nil, err
	}
	o.Capture, o.Workers = l.capture, l.workers
	if err := l.weather.Fill(&o); err != nil {
		return nil, err
	}
	return loopback.New(o, log)
}
