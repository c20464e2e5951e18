package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/cobra"
)

// options is the command line of doctor.
type options struct {
	card.InterfaceFlags
	network card.NetworkFlag
	socket  string
	listen  time.Duration
	json    bool
}

const help = `Looks at the host, and with -d at an interface, for what keeps RoCEv2 from working or
from being fast: kernel, capabilities, which way to the network a device would take and
what is lost by that, who has RoCEv2's port, the driver's XDP, MTU, VLAN tags, queues,
groups, firewall and switches, and for changes that a killed process left. Each line says what was seen, and below it what to do:

  ok        as it should be
  note      good to know
  warning   works, but not always or not well
  problem   does not work; the exit code is 1

By itself a device uses XDP where that can be had, and UDP sockets where not; --network
looks at what one of the two needs. Nothing is changed or opened. Without root some of it
cannot be seen. --listen waits for the questions that a querier asks switches' and hosts'
memberships with; as these come every 125 seconds by default, 130s shows whether there is
one. When it is stopped, it prints what it has found until then.`

// New is the command.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "doctor [-d DEVICE]",
		Short:   "Look for what keeps RoCEv2 from working on this host, and say what to do",
		Long:    help,
		Example: "  roced doctor -d eth0\n  roced doctor -d eth0 --listen 130s",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.listen < 0 || o.listen > cli.MaxDuration || o.listen > 0 && o.Device == "" {
				return cli.Usage(errors.New("--listen needs -d, and a duration of at most 24h"))
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.InterfaceFlags.Add(f)
	o.network.Add(f)
	daemon.AddDefaultSocket(f, &o.socket)
	f.DurationVar(&o.listen, "listen", 0, "`time` to listen for IGMP and MLD queries")
	f.BoolVarP(&o.json, "json", "j", false, "JSON")
	return cmd
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	if err := o.Enter(); err != nil {
		return err
	}
	var list []finding
	examine := func() error {
		list = checks(look(ctx, o.network.Network(), o.Device, o.socket, o.listen))
		return nil
	}
	runIn := hca.RunIn
	if o.Path() == "" { // a namespace that an old kernel does not identify
		runIn = func(_ string, fn func() error) error { return fn() }
	}
	if err := runIn(o.Path(), examine); err != nil {
		return err
	}
	show := write
	if o.json {
		show = writeJSON
	}
	if err := show(out, list); err != nil {
		return err
	}
	if ctx.Err() != nil { // what it has found is there, though not all
		return context.Cause(ctx)
	}
	if n := problems(list); n > 0 {
		return fmt.Errorf("%s, see above", cli.Several(n, "problem"))
	}
	return nil
}
