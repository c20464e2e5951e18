// SPDX-License-Identifier: Apache-2.0

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

// options holds the command line of doctor.
type options struct {
	card.InterfaceFlags
	network card.NetworkFlag
	socket  string
	listen  time.Duration
	json    bool
}

const help = `Checks the host, and with -d an interface, for anything that prevents RoCEv2 from working
or makes it slow: kernel, capabilities, the network that a device would use and its
limits, the owner of the RoCEv2 port, XDP support of the driver, MTU, VLAN tags, queues,
groups, firewall, switches, and settings that a killed process left behind. Each finding
has a severity and, below it, the remedy:

  ok        no action needed
  note      for information
  warning   works with limitations
  problem   does not work; the exit code is 1

By default a device uses XDP if available, otherwise UDP sockets; --network checks the
requirements of one of them. doctor changes nothing and opens no device. Some checks need
root. --listen waits for IGMP and MLD queries, without which snooping switches forget
groups. Queriers send one every 125 seconds by default, so 130s is sufficient. If doctor
is interrupted, it prints the findings so far.`

// New returns the command.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "doctor [-d DEVICE]",
		Short:   "Check this host for causes of RoCEv2 failures, and suggest remedies",
		Long:    help,
		Example: "  roced doctor -d eth0\n  roced doctor -d eth0 --listen 130s",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.listen < 0 || o.listen > cli.MaxDuration || o.listen > 0 && o.Device == "" {
				return cli.Usage(errors.New("--listen requires -d and a duration from 0 to 24h"))
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.InterfaceFlags.Add(f)
	o.network.Add(f)
	daemon.AddDefaultSocket(f, &o.socket)
	f.DurationVar(&o.listen, "listen", 0, "`time` to listen for IGMP and MLD queries (default 0: do not listen)")
	f.BoolVarP(&o.json, "json", "j", false, "print JSON")
	return cmd
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	if err := o.Enter(); err != nil {
		return err
	}
	var list []finding
	examine := func() error {
		list = checks(gather(ctx, o.network.Network(), o.Device, o.socket, o.listen))
		return nil
	}
	runIn := hca.RunIn
	if o.Path() == "" { // a namespace without an identifier (old kernels)
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
	if ctx.Err() != nil { // the findings so far are printed above
		return context.Cause(ctx)
	}
	if n := problems(list); n > 0 {
		return fmt.Errorf("%s found, see above", cli.Several(n, "problem"))
	}
	return nil
}
