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

// options is the command line of ping.
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

// maxDepth bounds --rx-depth, and maxMessage --size on a connection: buffers of that size are kept for that
// many.
const (
	maxDepth   = 16384
	maxMessage = 1 << 20
)

const help = `Without HOST: the server, for one client. With HOST: the client, which sends first.

This is ibv_ud_pingpong of rdma-core: each side may be that program, unmodified. The
two find each other over TCP, then send one datagram at a time there and back. Give
both sides the same --size and --count: two roced ping compare all but the count first, and a difference
is an error at once on both sides; a later error names different counts. ibv_ud_pingpong
always needs -g, the line of its GID table to use. Its own size is 1024, as here, though
its help says 2048, which does not fit an interface MTU of 1500 (RDMA MTU 1024).

Datagrams go over the IP version that HOST is reached with, or that the client
has, unless --gid-index says otherwise. One that is lost ends the exchange:
ibv_ud_pingpong waits for it forever, roced ping until --timeout. Between two roced ping
messages carry their number as immediate data, so that none counts twice.

With --rc or --uc, on both sides, the messages go over a connection, as those of ibv_rc_pingpong and
ibv_uc_pingpong, with up to 1 MiB; of a reliable one none is lost. --srq is ibv_srq_pingpong's (-q 1).
By themselves these send 4096 bytes: give them -s 1024, or roced ping --size 4096.

With --cm, on both sides, they meet by connection ids instead, and TCP is not needed: the server listens
at a port of rdma_cm's port space UDP, with --rc TCP, and HOST is an address of its device. The path MTU of
the connection is then that of the device.`

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
	f.IntVarP(&o.count, "count", "c", 1000, "`messages` each way, as ping(8)'s -c")
	f.IntVarP(&o.count, "iters", "n", 1000, "the same, as the -n of ibv_*_pingpong: `messages` each way")
	f.IntVarP(&o.rxDepth, "rx-depth", "r", 500, "`receives` that are posted ahead")
	f.DurationVarP(&o.timeout, "timeout", "W", 5*time.Second, "how long to wait for a message until it counts as lost")
	f.BoolVar(&o.check, "check", false, "check every received byte; both sides need it, as the -c of ibv_*_pingpong")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print each received message, and the time of its round trip")
	o.waiting.Add(f, "e", "")
	f.BoolVarP(&o.json, "json", "j", false, "JSON, times in nanoseconds")
	f.BoolVar(&o.byID, "cm", false, "meet by connection ids (rdma_cm), at --port of port space UDP (with --rc TCP), instead of over TCP")
	f.BoolVar(&o.rc, "rc", false, "a reliable connection, as ibv_rc_pingpong's, instead of datagrams")
	f.BoolVar(&o.uc, "uc", false, "an unreliable connection, as ibv_uc_pingpong's")
	f.BoolVar(&o.srq, "srq", false, "a reliable connection whose receives are an SRQ's, as ibv_srq_pingpong's (with -q 1)")
	cli.AddSize(f, &o.mtu, "mtu", "m", 1024, "path MTU of a connection, in `bytes`; both sides need the same")
	f.Uint8Var(&o.trafficClass, "tclass", 0, "traffic `class` (TOS) of what is sent")
}

// validate finds mistakes before anything is opened.
func (o *options) validate() error {
	switch {
	case o.uc && (o.rc || o.srq):
		return errors.New("--uc excludes --rc and --srq: a connection is reliable or not")
	case o.uc && o.byID:
		return errors.New("--cm excludes --uc: ids connect reliably")
	case o.connects() && o.pathMTU() == 0:
		return fmt.Errorf("--mtu %d: 256, 512, 1024, 2048 or 4096 bytes", o.mtu)
	case o.connects() && (o.size < 0 || o.size > maxMessage):
		return fmt.Errorf("--size %d: 0 to %d bytes", o.size, maxMessage)
	case !o.connects() && (o.size < 0 || o.size > 4096):
		return fmt.Errorf("--size %d: 0 to 4096 bytes, the largest RDMA MTU; more with --rc or --uc", o.size)
	case o.count < 1 || o.count > pingpong.MaxTrips:
		return fmt.Errorf("--count %d: 1 to %d messages", o.count, pingpong.MaxTrips)
	case o.rxDepth < 1 || o.rxDepth > maxDepth:
		return fmt.Errorf("--rx-depth %d: 1 to %d receives", o.rxDepth, maxDepth)
	case o.timeout <= 0 || o.timeout > cli.MaxDuration:
		return fmt.Errorf("--timeout %v: more than 0, at most %v", o.timeout, cli.MaxDuration)
	}
	return errors.Join(o.waiting.Check(), o.Flags.Check())
}

// connects says that there is a connection, and not datagrams.
func (o *options) connects() bool { return o.rc || o.uc || o.srq }

// addresses is how many the two sides tell each other.
func (o *options) addresses() int {
	if o.srq {
		return meet.SRQAddresses
	}
	return 1
}

// service is the connection's.
func (o *options) service() verbs.QPType {
	switch {
	case o.uc:
		return verbs.QPTypeUC
	case o.connects():
		return verbs.QPTypeRC
	}
	return verbs.QPTypeUD
}

// stream says what the connection is like.
func (o *options) stream(source netip.Addr) card.StreamOptions {
	return card.StreamOptions{
		Type: o.service(), Size: o.size, RecvDepth: o.rxDepth, Shared: o.srq, MTU: o.pathMTU(), Source: source, TrafficClass: o.trafficClass, Spin: !o.waiting.Sleep,
	}
}

// pathMTU is --mtu; 0 if it is none.
func (o *options) pathMTU() verbs.MTU {
	mtu, _ := card.ParseMTU(o.mtu)
	return mtu
}

// notes is where everything goes that is no result.
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
