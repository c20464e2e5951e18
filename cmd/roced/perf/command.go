// SPDX-License-Identifier: Apache-2.0

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

const help = `Without HOST, perf is the server. It serves one client after another until Ctrl-C; with
--perftest, --rc or --uc it exits after one. A client that is silent for 30 seconds is dropped.
With HOST, perf is the client and measures against the server on HOST.

The two sides exchange addresses over TCP, as ibv_ud_pingpong does. Datagrams use the IP version
of HOST, unless --gid-index selects another.

With --perftest the peer is ib_send_bw -c UD or ib_send_lat -c UD of perftest ` + perftest.Version + ` (printed by
-V; Debian 12's package perftest 4.5+0.17), client or server. Both sides then need --bandwidth or
--latency, and the same size (--sizes, their -s) and count (--count, their -n), since perftest does not
exchange them. The defaults are perftest's: 1000 messages of the MTU, or of 2 bytes for latency. Two roced
compare all settings except the count first and report differences at once; different counts are
reported by a later error. There is one run. Latency is of full round trips, of which perftest prints half.
The first trip warms caches and is not counted, so -n 1000 gives 999; perftest omits one too.
UD may lose messages: then perftest waits forever, and roced perf ends with an error. To reduce losses,
set their -r (posted receives) to at least -n, or --rate here to a low value. Each side reports only its
own measurements. Unsupported, and reported as errors: -b and --reversed (the server sends), -D
(a time instead of -n), -R (rdma_cm instead of TCP).

For multicast, use --group here (their -g) on the receiving sides: the server for bandwidth,
both for latency, each with a group of its own. Their -M is the MGID byte by byte:
0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3. Without -M they use an IPv6 group of interface scope.

With --rc or --uc the test uses connections: --op send, write, read, atomic (fetch-and-add) or swap
(compare-and-swap), with messages of up to 8 MiB; reads and atomics need --rc. Both sides need the
same flags and use the protocol of ib_send_bw, ib_write_lat and so on with -c RC or -c UC: either side
may be that program, with the same -s, -n and -q (for swap ib_atomic_bw -A CMP_AND_SWAP). The default
sizes are perftest's: 65536 bytes for bandwidth, 2 for latency, 8 for atomics. For WRITEs, reads and
atomics only the server's card takes part, so the server prints the client's result. RC loses no messages;
the report lists retransmissions, which cost time, and congestion events (CNPs, ECN marks) that
slowed the connections down.`

const examples = `  roced perf -d eth0                       on the first host
  roced perf -d eth0 10.0.0.1              on the second host
  roced perf -d eth0 10.0.0.1 --latency --sleep --json
  roced perf -d eth0 --rc --bandwidth --op write                on the first host
  roced perf -d eth0 --rc --bandwidth --op write 10.0.0.1       on the second host
  ib_write_bw -c RC -x 1 10.0.0.1                               instead, on the second host
  roced perf -d eth0 --perftest --bandwidth -s 1024 -n 500
  ib_send_bw -c UD -x 1 -s 1024 -n 500 10.0.0.1    on the second host
  ib_send_lat -c UD -x 1                           on the first host
  roced perf -d eth0 --perftest --latency 10.0.0.1 on the second host`

// New returns the command. It logs to log.
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

// run opens the card and runs the client or the server.
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
