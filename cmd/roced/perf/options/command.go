// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/spf13/cobra"
)

func (o *Options) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.Flags.Add(f)
	f.BoolVar(&o.Once, "once", false, "server: exit after one client (always with --perftest, --rc and --uc)")
	cli.AddSizes(f, &o.Sizes, "sizes", "s", []int{64, 256, 1024}, "client: list of payload sizes in `bytes`, each with an optional k or M; with --perftest, --rc and --uc one size, on both sides")
	f.DurationVar(&o.Duration, "duration", 2*time.Second, "client: sending time for each bandwidth size; not with --perftest, --rc and --uc, which send --count messages")
	f.IntVarP(&o.Trips, "count", "n", 10000, "client: number of round `trips` for each latency size; with --perftest, --rc and --uc number of messages per queue pair, on both sides (default 1000, or 5000 WRITEs)")
	f.BoolVar(&o.bandwidth, "bandwidth", false, "client: measure bandwidth (default both); with --perftest, --rc and --uc one of the two, on both sides")
	f.BoolVar(&o.latency, "latency", false, "client: measure latency")
	o.Waiting.Add(f, "", "client: both sides ")
	f.BoolVarP(&o.JSON, "json", "j", false, "client: JSON, times in nanoseconds")
	f.BoolVar(&o.Perftest, "perftest", false, "the peer is ib_send_bw or ib_send_lat -c UD")
	f.StringVar(&o.Group, "group", "", "perftest: multicast `address` to receive from")
	f.IntVar(&o.Rate, "rate", 0, "perftest, bandwidth: `messages` per second to send; 0: unlimited")
	f.DurationVarP(&o.Timeout, "timeout", "W", meet.ReplyTimeout, "perftest: time after which missing messages count as lost")
	f.BoolVar(&o.RC, "rc", false, "reliable connections instead of datagrams; the peer is roced perf --rc, or perftest -c RC")
	f.BoolVar(&o.uc, "uc", false, "unreliable connections; the peer is roced perf --uc, or perftest -c UC")
	o.op = string(connection.Send)
	f.Var(&cli.Choice{List: connection.Operations(), Value: &o.op}, "op", "connections: `operation`: send, write, read, atomic or swap (ib_send_bw, ib_write_bw, ..., ib_atomic_bw -A CMP_AND_SWAP)")
	f.IntVarP(&o.Pairs, "qps", "q", 1, "connections: number of `queue pairs` on each side, for bandwidth")
	f.IntVarP(&o.Depth, "depth", "t", 128, "connections: maximum number of outstanding `requests` per queue pair")
	cli.AddSize(f, &o.MTU, "mtu", "m", 0, "connections: path MTU in `bytes`; 0: the smaller RDMA MTU of the two sides")
	f.DurationVar(&o.AckTimeout, "ack-timeout", card.AckTimeout, "--rc: `time` without an acknowledgment after which packets are retransmitted, at most 7 times; rounded up to 4.096 us times a power of 2 (perftest -u)")
}
