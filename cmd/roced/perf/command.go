package perf

import (
	"context"
	"log/slog"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/compatible"
	"github.com/roced/roced/cmd/roced/perf/options"
	"github.com/roced/roced/cmd/roced/perf/own"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"github.com/spf13/cobra"
)

const help = `Without HOST: the server, which answers one client after another until Ctrl-C, and with
--perftest, --rc or --uc ends after one. It gives up a client from whom nothing comes for 30 seconds.
With HOST: the client, which measures against the server there.

The two find each other over TCP as ibv_ud_pingpong does. Datagrams go over the
IP version that HOST is reached with, unless --gid-index says otherwise.

With --perftest the other end is ib_send_bw -c UD or ib_send_lat -c UD of perftest
` + perftest.Version + ` (their -V; Debian 12's package perftest 4.5+0.17), client or server. Both sides
then need --bandwidth or --latency, and the same size and count, which perftest does not tell
the other (two roced compare all but the count first, and end at once with an error if they differ; a later error names different counts): --sizes (one) as their -s, --count as their -n, by themselves what
perftest has (1000 messages of the MTU, or of 2 bytes for latency). There is one run, and
latency is of full round trips, of which perftest prints half. The first of them makes caches
warm and is not counted, so that -n 1000 gives 999; perftest measures one fewer too. UD may lose: then
perftest waits forever, and this side says so and ends. -r there, the receives
that are posted, should be at least -n, or --rate here low. Each side reports what it has
measured, and nothing else. What is not spoken, and ends with an error: -b and --reversed
(the server sends), -D (a time instead of -n), -R (rdma_cm instead of TCP).

Multicast, -g there, is --group here, on the sides that receive: the server for bandwidth,
both for latency, each with a group of its own. Theirs is -M, the MGID byte by
byte: 0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3. Without it they take an IPv6 group that
stays within the interface.

With --rc or --uc the two measure over connections: --op send, write, read, atomic (fetch-and-add) or
swap (compare-and-swap; reads and both atomics with --rc only), messages of up to 8 MiB. Both sides
need the same flags, and speak as ib_send_bw, ib_write_lat and so on, -c RC or -c UC: each may be
that program, with the same -s, -n and -q (of swap ib_atomic_bw -A CMP_AND_SWAP). By themselves they
have perftest's sizes and counts: 65536 bytes for bandwidth, 2 for latency, 8 of an atomic. Of WRITEs,
reads and atomics the server's card does all by itself: what the server prints is what the client
tells it. RC loses nothing; packets that were sent again are told of, and cost time, and so is
congestion (CNPs, marks of ECN) that has slowed the connections down.`

const examples = `  roced perf -d eth0                       on one host
  roced perf -d eth0 10.0.0.1              on the other
  roced perf -d eth0 10.0.0.1 --latency --sleep --json
  roced perf -d eth0 --rc --bandwidth --op write                on one host
  roced perf -d eth0 --rc --bandwidth --op write 10.0.0.1       on the other
  ib_write_bw -c RC -x 1 10.0.0.1                               instead of the second
  roced perf -d eth0 --perftest --bandwidth -s 1024 -n 500
  ib_send_bw -c UD -x 1 -s 1024 -n 500 10.0.0.1    on the other
  ib_send_lat -c UD -x 1                           on one host
  roced perf -d eth0 --perftest --latency 10.0.0.1 on the other`

// New is the command. It logs to log.
func New(log *slog.Logger) *cobra.Command {
	o := &options.Options{Flags: meet.Flags{Flags: card.Flags{Log: log}}, Quiet: traffic.QuietLimit}
	cmd := &cobra.Command{
		Use:     "perf -d DEVICE [HOST]",
		Short:   "Measure bandwidth and latency of datagrams and connections between two hosts",
		Long:    help,
		Example: examples,
		Args:    meet.OneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Out, o.ErrOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			o.Take(args)
			o.TakePerftest(cmd)
			if err := o.Check(cmd); err != nil {
				return cli.Usage(err)
			}
			return run(cmd, o)
		},
	}
	o.AddFlags(cmd)
	return cmd
}

// run opens the card, and is the client or the server of the measurement.
func run(cmd *cobra.Command, o *options.Options) error {
	d, err := o.Open(cmd.Context())
	if err != nil {
		return err
	}
	if !o.SeesWrites() {
		o.Waiting.Choose(d)
	}
	measure := own.RunClient
	switch {
	case o.Perftest || o.Connects():
		measure = compatible.RunPerftest
	case o.Host == "":
		measure = own.RunServer
	}
	return d.Use(cmd.Context(), func(ctx context.Context) error { return measure(ctx, d, o.Path(), o) })
}
