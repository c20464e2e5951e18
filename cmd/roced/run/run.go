// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/cmd/roced/run/systemd"
	"github.com/spf13/cobra"
)

// options holds the command line of run.
type options struct {
	file    string
	devices []string
	socket  string
	group   string
	mode    string
	metrics string
	memory  loopbackFlags
	network card.NetworkFlag // of the devices of --device
	level   string           // empty unless --log-level is given
}

const help = `Runs the service: it opens the configured devices, which any number of unprivileged
programs share through its socket.

Without --config and --device the configuration is ` + config.DefaultPath + `
(roced config example prints all keys; see roced.toml(5)). With --device no file is read
unless --config is given as well; the devices of both are opened.

A device whose interface is missing or disappears is opened again when it appears. SIGHUP
reloads the configuration; the log lists changes that require a restart. SIGTERM and
SIGINT stop the service. The socket is that passed by systemd (roced.socket), otherwise
that of the configuration. Under systemd, the service reports readiness and status and
uses the watchdog.

With --network udp no root, capabilities or kernel modules are needed: an ordinary user
gives --device, and --socket with a path in a directory of that user.

With --loopback the service uses an in-memory network instead of interfaces, which needs
no privileges and no kernel support, and reads no file. A program that opens the device
"loop" is a separate host with the lowest free address of each --pool. --host adds a
device with that name and fixed addresses, which programs share. See roced exec --help
for impairments such as --loss 0.1%. Without --group and --mode only the same user can
use the socket, so other users must not be able to write to its directory.

Exit codes: 0 after SIGTERM or SIGINT; 1 after a failure; 2 for an invalid command line
or configuration.`

// New returns the command.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Run the service, whose devices unprivileged programs share",
		Long:    help,
		Example: "  roced run --device eth0\n  roced run --device eth0 --network udp --socket $XDG_RUNTIME_DIR/roced.sock      as an ordinary user\n  roced run --config /etc/roced/roced.toml\n  roced run --loopback --socket ./roced.sock --host server=10.1.2.3",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if level := cmd.Flags().Lookup("log-level"); level != nil && level.Changed {
				o.level = level.Value.String()
			}
			return o.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.file, "config", "c", "", "configuration `file`")
	f.VarP(&cli.Interface{Many: &o.devices}, "device", "d", "network `interface` of a device; may be repeated")
	o.network.Add(f)
	f.StringVar(&o.socket, "socket", "", "`path` of the socket for programs, in an existing directory (default "+config.DefaultSocket+"; with --loopback roced.sock in XDG_RUNTIME_DIR, or in roced-UID in the temporary directory)")
	f.StringVar(&o.group, "group", "", "`group` of the socket, by name or number; its members can connect")
	f.StringVar(&o.mode, "mode", "", "`permissions` of the socket in octal (default 0660; with --loopback and no --group 0600)")
	o.memory.add(f)
	f.StringVar(&o.metrics, "metrics", "", "`address` of Prometheus metrics: unix:PATH or HOST:PORT (default none)")
	return cmd
}

// load returns the configuration of the command line and its file. Invalid values are usage errors.
func (o *options) load() (*config.Config, error) {
	c := config.Default()
	if o.memory.on {
		c.Socket = config.Socket{Path: loopback.Socket(), Mode: 0o600}
	}
	if file := o.path(); file != "" {
		var err error
		if c, err = config.Load(file); errors.Is(err, fs.ErrNotExist) && o.file == "" {
			return nil, cli.Usage(fmt.Errorf("%w; create one with roced config example, or use --device or --loopback", err))
		} else if err != nil {
			return nil, cli.Usage(err)
		}
	}
	for _, name := range o.devices {
		if slices.ContainsFunc(c.Devices, func(d config.Device) bool { return d.Interface == name || d.Name == name }) {
			return nil, cli.Usage(fmt.Errorf("--device %s: a device with this name exists already", name))
		}
		d := config.NewDevice(name)
		d.Network, d.Workers = o.network.Network(), o.memory.workers
		c.Devices = append(c.Devices, d)
	}
	if o.socket != "" {
		c.Socket.Path = o.socket
	}
	if err := o.loadPermissions(&c.Socket); err != nil {
		return nil, cli.Usage(err)
	}
	if o.metrics != "" {
		if _, _, err := net.SplitHostPort(o.metrics); err != nil && !strings.HasPrefix(o.metrics, "unix:") {
			return nil, cli.Usage(fmt.Errorf("--metrics must be unix:PATH or HOST:PORT, such as 127.0.0.1:9464: %q", o.metrics))
		}
		c.Metrics.Listen = o.metrics
	}
	if o.level != "" {
		if err := c.LogLevel.UnmarshalText([]byte(o.level)); err != nil {
			return nil, cli.Usage(err)
		}
	}
	return c, nil
}

// loadPermissions applies --group and --mode. --group gives its members access.
func (o *options) loadPermissions(s *config.Socket) (err error) {
	if o.group != "" {
		s.Group = o.group
		s.Mode |= 0o060
	}
	if o.mode != "" {
		if s.Mode, err = config.ParseMode(o.mode); err != nil {
			return fmt.Errorf("--mode: %w", err)
		}
	}
	return nil
}

// path returns the path of the configuration file, or "".
func (o *options) path() string {
	if o.file == "" && o.devices == nil && !o.memory.on {
		return config.DefaultPath
	}
	return o.file
}

func (o *options) run(ctx context.Context, errOut io.Writer) error {
	if err := o.memory.check(o); err != nil {
		return cli.Usage(err)
	}
	c, err := o.load()
	if err != nil {
		return o.listErrors(errOut, err)
	}
	sockets, err := systemd.AcquireSockets()
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(c.LogLevel)
	o.warnMissing(errOut)
	s, err := newService(c, o, sockets, level, systemd.NewLogger(os.Stderr, level))
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// warnMissing reports interfaces of --device that do not exist, if out is a terminal: most are typos, and easily missed
// in the log.
func (o *options) warnMissing(out io.Writer) {
	interfaces, err := net.Interfaces()
	if !cli.IsTerminal(out) || err != nil {
		return
	}
	var names []string
	for _, i := range interfaces {
		names = append(names, i.Name)
	}
	for _, name := range o.devices {
		if !slices.Contains(names, name) {
			fmt.Fprintf(out, "roced: interface %q not found (available: %s); the service waits for it. Press Ctrl-C to stop\n", name, strings.Join(names, ", "))
		}
	}
}

// listErrors prints a line for each error of a configuration with several, as roced config check does, and returns the
// remaining error.
func (o *options) listErrors(out io.Writer, err error) error {
	var list config.Errors
	if !errors.As(err, &list) || len(list) == 1 {
		return err
	}
	for _, m := range list {
		fmt.Fprintln(out, m)
	}
	return cli.Usage(fmt.Errorf("%s in %s", cli.Several(uint64(len(list)), "error"), o.path()))
}
