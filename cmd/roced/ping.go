package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
)

// pingOptions is the command line of ping.
type pingOptions struct {
	meetFlags
	size         int
	count        int
	rxDepth      int
	trafficClass uint8
	timeout      time.Duration
	check        bool
	sleep        bool

	out, errOut io.Writer
}

// maxPingDepth bounds --rx-depth: buffers of the longest message are kept for that many.
const maxPingDepth = 16384

const pingHelp = `Without HOST: the server, for one client. With HOST: the client, which sends first.

This is ibv_ud_pingpong of rdma-core: each side may be that program, unmodified. The
two find each other over TCP, then send one datagram at a time there and back. Give
both sides the same --size and --count: nothing tells the other. ibv_ud_pingpong
always needs -g, the line of its GID table to use. Its own size is 1024, as here, though
its help says 2048, which does not fit an interface MTU of 1500 (RDMA MTU 1024).

Datagrams go over the IP version that HOST is reached with, or that the client
has, unless --gid-index says otherwise. One that is lost ends the exchange:
ibv_ud_pingpong waits for it forever, roced ping until --timeout. Between two roced ping
messages carry their number as immediate data, so that none counts twice.`

const pingExamples = `  roced ping -d eth0                            on one host
  roced ping -d eth0 10.0.0.1                   on the other
  ibv_ud_pingpong -d rxe0 -g 1                  instead of the first
  ibv_ud_pingpong -d rxe0 -g 1 10.0.0.1         instead of the second`

func newPingCommand(log *slog.Logger) *cobra.Command {
	o := &pingOptions{meetFlags: meetFlags{cardFlags: cardFlags{log: log}}}
	cmd := &cobra.Command{
		Use:     "ping -d DEVICE [HOST]",
		Short:   "Exchange datagrams one by one with roced ping or ibv_ud_pingpong",
		Long:    pingHelp,
		Example: pingExamples,
		Args:    oneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.out, o.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			o.take(args)
			if err := o.validate(); err != nil {
				return usageError{err}
			}
			return o.run(cmd)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *pingOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.meetFlags.add(f)
	f.IntVarP(&o.size, "size", "s", 1024, "`bytes` of payload")
	f.IntVarP(&o.count, "count", "n", 1000, "`messages` each way")
	f.IntVarP(&o.rxDepth, "rx-depth", "r", 500, "`receives` that are posted ahead")
	f.DurationVarP(&o.timeout, "timeout", "W", 5*time.Second, "how long to wait for a message until it counts as lost")
	f.BoolVarP(&o.check, "check", "c", false, "check every byte that comes; both sides need it, as ibv_ud_pingpong's -c")
	f.BoolVarP(&o.sleep, "sleep", "e", false, "sleep while waiting, else spin")
	f.Uint8Var(&o.trafficClass, "tclass", 0, "traffic `class` (TOS) of what is sent")
}

// validate finds mistakes before anything is opened.
func (o *pingOptions) validate() error {
	switch {
	case o.size < 0 || o.size > 4096:
		return fmt.Errorf("--size %d: 0 to 4096 bytes, the largest RDMA MTU", o.size)
	case o.count < 1 || o.count > maxTrips:
		return fmt.Errorf("--count %d: 1 to %d messages", o.count, maxTrips)
	case o.rxDepth < 1 || o.rxDepth > maxPingDepth:
		return fmt.Errorf("--rx-depth %d: 1 to %d receives", o.rxDepth, maxPingDepth)
	case o.timeout <= 0 || o.timeout > maxDuration:
		return fmt.Errorf("--timeout %v: more than 0, at most %v", o.timeout, maxDuration)
	}
	return o.meetFlags.check()
}

func (o *pingOptions) run(cmd *cobra.Command) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	return d.use(cmd.Context(), func(ctx context.Context) error { return runPing(ctx, d, o.path(), o) })
}
