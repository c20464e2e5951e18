// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// loopbackFlags holds the flags of an in-memory network.
type loopbackFlags struct {
	on    bool
	pools []string
	hosts []string

	workers    int
	capture    string
	impairment loopback.ImpairmentFlags
}

func (l *loopbackFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&l.on, "loopback", false, "use an in-memory network instead of interfaces (no privileges needed)")
	f.StringArrayVar(&l.hosts, "host", nil, "with --loopback: named host as `name`=address[,address]; may be repeated")
	f.IntVar(&l.workers, "workers", 1, "`number` of workers per --device and --host, from 1 to 8; each serves some of the programs. An interface needs a queue per worker; programs that share an XRC domain need one worker")
	f.StringSliceVar(&l.pools, "pool", loopback.DefaultPools, "with --loopback: `networks` from which other hosts get addresses")
	l.impairment.Add(f, "with --loopback: ")
	f.StringVar(&l.capture, "capture", "", "with --loopback: pcapng `file` for the packets of all hosts (for other devices use roced dump)")
}

// check returns an error for flags that cannot be combined.
func (l *loopbackFlags) check(o *options) error {
	if l.on && (o.file != "" || o.devices != nil) {
		return errors.New("--loopback cannot be combined with --config or --device")
	}
	if o.devices == nil && o.network.Network() != hca.NetworkAuto {
		return errors.New("--network requires --device; in the configuration, set network = \"udp\" below [[device]]")
	}
	if given := l.impairment.Given(); !l.on && given != "" {
		return fmt.Errorf("--%s requires --loopback", given)
	}
	if !l.on && l.capture != "" {
		return errors.New("--capture requires --loopback; for the device of an interface use roced dump")
	}
	if err := l.checkWorkers(o); err != nil {
		return err
	}
	if !l.on && l.hosts != nil {
		return errors.New("--host requires --loopback")
	}
	return nil
}

func (l *loopbackFlags) checkWorkers(o *options) error {
	switch {
	case l.workers < 1 || l.workers > hca.MaxWorkers:
		return fmt.Errorf("--workers must be from 1 to %d: %d", hca.MaxWorkers, l.workers)
	case l.workers == 1:
	case l.on && l.hosts == nil:
		return errors.New("--workers requires --host: other hosts of an in-memory network have one program and one worker")
	case !l.on && o.devices == nil:
		return errors.New("--workers requires --device; in the configuration, set workers below [[device]]")
	case o.network.Network() == hca.NetworkUDP:
		return errors.New("--workers cannot be combined with --network udp: a device over UDP sockets has one worker")
	}
	return nil
}

// open opens the in-memory network; nil without --loopback.
func (l *loopbackFlags) open(log *slog.Logger) (*loopback.Network, error) {
	if !l.on {
		return nil, nil
	}
	o, err := loopback.ParseOptions(l.pools, l.hosts)
	if err != nil {
		return nil, err
	}
	o.Capture, o.Workers = l.capture, l.workers
	if err := l.impairment.Fill(&o); err != nil {
		return nil, err
	}
	return loopback.New(o, log)
}
