// SPDX-License-Identifier: Apache-2.0

package ping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/internal/pingpong"
	"github.com/roced/roced/verbs"
	"github.com/spf13/cobra"
)

// options holds the command line of ping.
type options struct {
	meet.Flags
	size         int
	count        int
	rxDepth      int
	trafficClass uint8
	timeout      time.Duration
	check        bool
	verbose      bool
	waiting      card.Waiting
	byID         bool
	rc, uc, srq  bool
	mtu          int

	json bool

	out, errOut io.Writer
}

// maxDepth is the maximum of --rx-depth, and maxMessage that of --size with a connection. There is a buffer
// of that size for each receive.
const (
	maxDepth   = 16384
	maxMessage = 1 << 20
)

const help = `Without HOST, ping is the server and serves one client. With HOST, ping is the client
and sends first.

The protocol is that of rdma-core's ibv_ud_pingpong: either side may be that program, unmodified.
The two sides exchange addresses over TCP, then datagrams one at a time. Use the same --size and --count
on both sides. Two roced ping compare all settings except the count first, and both report a
difference at once; different counts are reported by a later error. ibv_ud_pingpong always needs -g,
the index in its GID table. Its default size is 1024, as here, though its help says 2048, which does
not fit an interface MTU of 1500 (RDMA MTU 1024).

Datagrams use the IP version of HOST, or of the client, unless --gid-index selects another. A lost
datagram ends the exchange: ibv_ud_pingpong waits for it forever, roced ping until --timeout.
Between two roced ping messages carry their number as immediate data, so duplicates are not counted.

With --rc or --uc on both sides the messages use a connection, as in ibv_rc_pingpong and
ibv_uc_pingpong, with up to 1 MiB; a reliable connection loses no messages. --srq is for
ibv_srq_pingpong (with -q 1). Their default size is 4096 bytes: use -s 1024 there, or --size 4096 here.

With --cm on both sides connection ids replace TCP. The server listens on a port of
rdma_cm's port space UDP, or TCP with --rc, and HOST is an address of its device. The path MTU of
the connection is then that of the device.`

const examples = `  roced ping -d eth0                            on the first host
  roced ping -d eth0 10.0.0.1                   on the second host
  roced ping -d eth0 --cm 10.0.0.1              without TCP, if the server uses --cm
  ibv_ud_pingpong -d rxe0 -g 1                  instead, on the first host
  ibv_ud_pingpong -d rxe0 -g 1 10.0.0.1         instead, on the second host`

// New returns the command. It logs to log.
func New(log *slog.Logger) *cobra.Command {
	o := &options{Flags: meet.Flags{Flags: card.Flags{Log: log}}}
	cmd := &cobra.Command{
		Use:     "ping -d DEVICE [HOST]",
		Short:   "Exchange messages one by one with roced ping or rdma-core's ibv_*_pingpong",
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
	cli.AddSize(f, &o.size, "size", "s", 1024, "`bytes` of payload, with an optional k or M")
	f.IntVarP(&o.count, "count", "c", 1000, "number of `messages` each way, as -c of ping(8)")
	f.IntVarP(&o.count, "iters", "n", 1000, "number of `messages` each way, as -n of ibv_*_pingpong")
	f.IntVarP(&o.rxDepth, "rx-depth", "r", 500, "number of `receives` posted in advance")
	f.DurationVarP(&o.timeout, "timeout", "W", 5*time.Second, "time after which a missing message counts as lost")
	f.BoolVar(&o.check, "check", false, "check every received byte, as -c of ibv_*_pingpong; needed on both sides")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print each received message and its round trip time")
	o.waiting.Add(f, "e", "")
	f.BoolVarP(&o.json, "json", "j", false, "JSON, times in nanoseconds")
	f.BoolVar(&o.byID, "cm", false, "use connection ids (rdma_cm) instead of TCP: --port is in port space UDP, or TCP with --rc")
	f.BoolVar(&o.rc, "rc", false, "reliable connection instead of datagrams, as ibv_rc_pingpong")
	f.BoolVar(&o.uc, "uc", false, "unreliable connection, as ibv_uc_pingpong")
	f.BoolVar(&o.srq, "srq", false, "reliable connection with receives of an SRQ, as ibv_srq_pingpong -q 1")
	cli.AddSize(f, &o.mtu, "mtu", "m", 1024, "path MTU of a connection, in `bytes`; the same on both sides")
	f.Uint8Var(&o.trafficClass, "tclass", 0, "traffic `class` (TOS) of sent packets")
}

// validate rejects invalid flags before anything is opened.
func (o *options) validate() error {
	switch {
	case o.uc && (o.rc || o.srq):
		return errors.New("--uc cannot be used with --rc or --srq")
	case o.uc && o.byID:
		return errors.New("--cm cannot be used with --uc: it makes reliable connections")
	case o.connects() && o.pathMTU() == 0:
		return fmt.Errorf("--mtu must be 256, 512, 1024, 2048 or 4096 bytes: %d", o.mtu)
	case o.connects() && (o.size < 0 || o.size > maxMessage):
		return fmt.Errorf("--size must be 0 to %[2]d bytes: %[1]d", o.size, maxMessage)
	case !o.connects() && (o.size < 0 || o.size > 4096):
		return fmt.Errorf("--size must be 0 to 4096 bytes, the maximum RDMA MTU (--rc and --uc allow more): %d", o.size)
	case o.count < 1 || o.count > pingpong.MaxTrips:
		return fmt.Errorf("--count must be 1 to %[2]d messages: %[1]d", o.count, pingpong.MaxTrips)
	case o.rxDepth < 1 || o.rxDepth > maxDepth:
		return fmt.Errorf("--rx-depth must be 1 to %[2]d receives: %[1]d", o.rxDepth, maxDepth)
	case o.timeout <= 0 || o.timeout > cli.MaxDuration:
		return fmt.Errorf("--timeout must be more than 0 and at most %[2]v: %[1]v", o.timeout, cli.MaxDuration)
	}
	return errors.Join(o.waiting.Check(), o.Flags.Check())
}

// connects reports whether a connection is used instead of datagrams.
func (o *options) connects() bool { return o.rc || o.uc || o.srq }

// addresses returns the number of addresses that the two sides exchange.
func (o *options) addresses() int {
	if o.srq {
		return meet.SRQAddresses
	}
	return 1
}

// service returns the type of the connection's queue pair.
func (o *options) service() verbs.QPType {
	switch {
	case o.uc:
		return verbs.QPTypeUC
	case o.connects():
		return verbs.QPTypeRC
	}
	return verbs.QPTypeUD
}

// stream returns the options of the connection.
func (o *options) stream(source netip.Addr) card.StreamOptions {
	return card.StreamOptions{
		Type: o.service(), Size: o.size, RecvDepth: o.rxDepth, Shared: o.srq, MTU: o.pathMTU(), Source: source, TrafficClass: o.trafficClass, Spin: !o.waiting.Sleep,
	}
}

// pathMTU returns --mtu, or 0 if that is not an MTU.
func (o *options) pathMTU() verbs.MTU {
	mtu, _ := card.ParseMTU(o.mtu)
	return mtu
}

// notes returns the destination of all output except the result.
func (o *options) notes() io.Writer {
	if o.json {
		return o.errOut
	}
	return o.out
}

func (o *options) run(cmd *cobra.Command) error {
	d, err := o.Open(cmd.Context())
	if err != nil {
		return err
	}
	o.waiting.Choose(d)
	return d.Use(cmd.Context(), func(ctx context.Context) error { return run(ctx, d, o.Path(), o) })
}
