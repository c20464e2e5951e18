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

// options is the command line of run.
type options struct {
	file    string
	devices []string
	socket  string
	group   string
	mode    string
	metrics string
	memory  loopbackFlags
	network card.NetworkFlag // of the devices of the command line
	level   string           // empty unless --log-level is given
}

const help = `Runs the service: it opens the devices that the configuration names, and any number of
programs use them through its socket, without privileges.

Without --config and --device the configuration is ` + config.DefaultPath + `
(roced config example shows all keys; roced.toml(5)). With --device no file is read
unless --config names one; the devices are those of both.

A device whose interface is missing, or goes, is opened again when it is there.
SIGHUP has the configuration read again: what can be changed is, and the log says what
needs a restart. SIGTERM and SIGINT end the service.

Programs' socket is systemd's if it passes one (roced.socket), else the
configuration's. With systemd, readiness, state and a watchdog are reported.

With --network udp nothing needs root, a capability or a kernel's help: an ordinary user
gives --device, and with --socket a path in a directory of its own.

With --loopback there is no interface: a network in memory, which needs no privilege and
no kernel's help. A program that opens the device "loop" is a host of its own on it,
with the lowest free address of each --pool. A --host is a device of its name, whose
addresses are known beforehand; programs that open it share it. No file is read. What is
wrong with that network, such as --loss 0.1%, roced exec --help explains. The
socket is for your user alone, unless --group or --mode says otherwise, so its
directory has to be one that others cannot write to.

Exit codes: 0 after SIGTERM or SIGINT; 1 if something failed; 2 if the command line or
the configuration is wrong.`

// New is the command.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Run the service: programs share its devices, without privileges",
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
	f.VarP(&cli.Interface{Many: &o.devices}, "device", "d", "network `interface` to make a device of; may be given several times")
	o.network.Add(f)
	f.StringVar(&o.socket, "socket", "", "`path` of the socket that programs connect to, in an existing directory (default "+config.DefaultSocket+"; with --loopback roced.sock in XDG_RUNTIME_DIR, else in the folder roced-UID for temporary files)")
	f.StringVar(&o.group, "group", "", "`group` of the socket, by name or number, whose members may connect")
	f.StringVar(&o.mode, "mode", "", "`permissions` of the socket, as chmod takes them (default 0660; with --loopback and no --group 0600)")
	o.memory.add(f)
	f.StringVar(&o.metrics, "metrics", "", "`address` for Prometheus: unix:PATH or HOST:PORT (default none)")
	return cmd
}

// load makes the configuration of the command line and its file. What is wrong is a usage error.
func (o *options) load() (*config.Config, error) {
	c := config.Default()
	if o.memory.on {
		c.Socket = config.Socket{Path: loopback.Socket(), Mode: 0o600}
	}
	if file := o.path(); file != "" {
		var err error
		if c, err = config.Load(file); errors.Is(err, fs.ErrNotExist) && o.file == "" {
			return nil, cli.Usage(fmt.Errorf("%w; roced config example shows one, --device and --loopback need none", err))
		} else if err != nil {
			return nil, cli.Usage(err)
		}
	}
	for _, name := range o.devices {
		if slices.ContainsFunc(c.Devices, func(d config.Device) bool { return d.Interface == name || d.Name == name }) {
			return nil, cli.Usage(fmt.Errorf("--device %s: there is a device of this name already; give each its own", name))
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
			return nil, cli.Usage(fmt.Errorf("--metrics %s: write unix:PATH or HOST:PORT, such as 127.0.0.1:9464", o.metrics))
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

// loadPermissions takes --group and --mode. Who names a group means its members.
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

// path is the configuration's file, empty for none.
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
		return o.listMistakes(errOut, err)
	}
	sockets, err := systemd.TakeSockets()
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(c.LogLevel)
	o.sayMissing(errOut)
	s, err := newService(c, o, sockets, level, systemd.NewLogger(os.Stderr, level))
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// sayMissing names, on a terminal, the interfaces of --device that do not exist: most are typos. The log says so too, but
// among other lines.
func (o *options) sayMissing(out io.Writer) {
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
			fmt.Fprintf(out, "roced: there is no interface %q; there are %s. The service waits for it; Ctrl-C ends it\n", name, strings.Join(names, ", "))
		}
	}
}

// listMistakes prints a line for each of several mistakes, as roced config check does, and gives what is
// left to say.
func (o *options) listMistakes(out io.Writer, err error) error {
	var mistakes config.Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) == 1 {
		return err
	}
	for _, m := range mistakes {
		fmt.Fprintln(out, m)
	}
	return cli.Usage(fmt.Errorf("%s in %s", cli.Several(uint64(len(mistakes)), "mistake"), o.path()))
}
