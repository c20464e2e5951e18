package ping

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/internal/pingpong"
	"github.com/spf13/cobra"
)

// options is the command line of ping.
type options struct {
	meet.Flags
	size         int
	count        int
	rxDepth      int
	trafficClass uint8
	timeout      time.Duration
	check        bool
	sleep        bool
	byID         bool

	out, errOut io.Writer
}

// maxDepth bounds --rx-depth: buffers of the longest message are kept for that many.
const maxDepth = 16384

const help = `Without HOST: the server, for one client. With HOST: the client, which sends first.

This is ibv_ud_pingpong of rdma-core: each side may be that program, unmodified. The
two find each other over TCP, then send one datagram at a time there and back. Give
both sides the same --size and --count: nothing tells the other. ibv_ud_pingpong
always needs -g, the line of its GID table to use. Its own size is 1024, as here, though
its help says 2048, which does not fit an interface MTU of 1500 (RDMA MTU 1024).

Datagrams go over the IP version that HOST is reached with, or that the client
has, unless --gid-index says otherwise. One that is lost ends the exchange:
ibv_ud_pingpong waits for it forever, roced ping until --timeout. Between two roced ping
messages carry their number as immediate data, so that none counts twice.

With --cm, on both sides, they meet by connection ids instead, and TCP is not needed: the server listens
at a port of rdma_cm's port space UDP, and HOST is an address of its device.`

const examples = `  roced ping -d eth0                            on one host
  roced ping -d eth0 10.0.0.1                   on the other
  roced ping -d eth0 --cm 10.0.0.1              without TCP, as the server
  ibv_ud_pingpong -d rxe0 -g 1                  instead of the first
  ibv_ud_pingpong -d rxe0 -g 1 10.0.0.1         instead of the second`

// New is the command. It logs to log.
func New(log *slog.Logger) *cobra.Command {
	o := &options{Flags: meet.Flags{Flags: card.Flags{Log: log}}}
	cmd := &cobra.Command{
		Use:     "ping -d DEVICE [HOST]",
		Short:   "Exchange datagrams one by one with roced ping or ibv_ud_pingpong",
		Long:    help,
		Example: examples,
		Args:    meet.OneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.out, o.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			o.Take(args)
			if err := o.validate(); err != nil {
				return cli.Usage(err)
			}
			return o.run(cmd)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.Flags.Add(f)
	f.IntVarP(&o.size, "size", "s", 1024, "`bytes` of payload")
	f.IntVarP(&o.count, "count", "n", 1000, "`messages` each way")
	f.IntVarP(&o.rxDepth, "rx-depth", "r", 500, "`receives` that are posted ahead")
	f.DurationVarP(&o.timeout, "timeout", "W", 5*time.Second, "how long to wait for a message until it counts as lost")
	f.BoolVarP(&o.check, "check", "c", false, "check every byte that comes; both sides need it, as ibv_ud_pingpong's -c")
	f.BoolVarP(&o.sleep, "sleep", "e", false, "sleep while waiting, else spin")
	f.BoolVar(&o.byID, "cm", false, "meet by connection ids (rdma_cm), at --port of port space UDP, instead of over TCP")
	f.Uint8Var(&o.trafficClass, "tclass", 0, "traffic `class` (TOS) of what is sent")
}

// validate finds mistakes before anything is opened.
func (o *options) validate() error {
	switch {
	case o.size < 0 || o.size > 4096:
		return fmt.Errorf("--size %d: 0 to 4096 bytes, the largest RDMA MTU", o.size)
	case o.count < 1 || o.count > pingpong.MaxTrips:
		return fmt.Errorf("--count %d: 1 to %d messages", o.count, pingpong.MaxTrips)
	case o.rxDepth < 1 || o.rxDepth > maxDepth:
		return fmt.Errorf("--rx-depth %d: 1 to %d receives", o.rxDepth, maxDepth)
	case o.timeout <= 0 || o.timeout > cli.MaxDuration:
		return fmt.Errorf("--timeout %v: more than 0, at most %v", o.timeout, cli.MaxDuration)
	}
	return o.Flags.Check()
}

func (o *options) run(cmd *cobra.Command) error {
	d, err := o.Open(cmd.Context())
	if err != nil {
		return err
	}
	return d.Use(cmd.Context(), func(ctx context.Context) error { return run(ctx, d, o.Path(), o) })
}
