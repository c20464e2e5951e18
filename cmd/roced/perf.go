package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
)

// perfOptions is the command line of perf.
type perfOptions struct {
	meetFlags

	// of the server
	once bool

	// of the client
	sizes     []int
	duration  time.Duration
	trips     int
	bandwidth bool
	latency   bool
	sleep     bool
	json      bool

	// with --perftest
	perftest bool
	ownSizes bool // --sizes was given
	group    string
	rate     int // messages a second, 0 for as fast as it goes
	timeout  time.Duration

	out, errOut io.Writer
}

// The flags that only one side has.
var (
	clientFlags = []string{"sizes", "duration", "count", "bandwidth", "latency", "sleep", "json"}
	serverFlags = []string{"once"}

	perftestFlags = []string{"group", "rate", "timeout"}
)

// What report.Waiting can be.
const (
	waitSpin  = "spin"
	waitSleep = "sleep"
)

// The limits of what can be asked for.
const (
	maxDuration = 24 * time.Hour
	maxTrips    = 10_000_000 // their times are kept in memory, 8 bytes each
)

const perfHelp = `Without HOST: the server, which answers one client after another until Ctrl-C.
With HOST: the client, which measures against the server there.

The two find each other over TCP as ibv_ud_pingpong does. Datagrams go over the
IP version that HOST is reached with, unless --gid-index says otherwise.

With --perftest the other end is ib_send_bw -c UD or ib_send_lat -c UD of perftest
` + perftestVersion + ` (their -V; Debian 12's package perftest 4.5+0.17), client or server. Both sides
then need --bandwidth or --latency, and the same size and count, which nothing tells
the other: --sizes (one) as their -s, --count as their -n, by themselves what
perftest has (1000 messages of the MTU, or of 2 bytes for latency). There is one run, and
latency is of full round trips, of which perftest prints half. UD may lose: then
perftest waits forever, and this side says so and ends. -r there, the receives
that are posted, should be at least -n, or --rate here low. Each side reports what it has
measured, and nothing else. What is not spoken, and ends with an error: -b and --reversed
(the server sends), -D (a time instead of -n), -q, -R (rdma_cm instead of TCP).

Multicast, -g there, is --group here, on the sides that receive: the server for bandwidth,
both for latency, each with a group of its own. Theirs is -M, the MGID byte by
byte: 0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3. Without it they take an IPv6 group that
stays within the interface.`

const perfExamples = `  roced perf -d eth0                       on one host
  roced perf -d eth0 10.0.0.1              on the other
  roced perf -d eth0 10.0.0.1 --latency --sleep --json
  roced perf -d eth0 --perftest --bandwidth -s 1024 -n 500
  ib_send_bw -c UD -x 1 -s 1024 -n 500 10.0.0.1    on the other
  ib_send_lat -c UD -x 1                           on one host
  roced perf -d eth0 --perftest --latency 10.0.0.1 on the other`

func newPerfCommand(log *slog.Logger) *cobra.Command {
	o := &perfOptions{meetFlags: meetFlags{cardFlags: cardFlags{log: log}}}
	cmd := &cobra.Command{
		Use:     "perf -d DEVICE [HOST]",
		Short:   "Measure bandwidth and latency of datagrams between two hosts",
		Long:    perfHelp,
		Example: perfExamples,
		Args:    oneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.out, o.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			o.take(args)
			o.takePerftest(cmd)
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			return o.run(cmd)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *perfOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.meetFlags.add(f)
	f.BoolVar(&o.once, "once", false, "server: end after one client")
	f.IntSliceVarP(&o.sizes, "sizes", "s", []int{64, 256, 1024}, "client: `bytes` of payload, a list")
	f.DurationVar(&o.duration, "duration", 2*time.Second, "client: how long to send, for each size of bandwidth")
	f.IntVarP(&o.trips, "count", "n", 10000, "client: round `trips`, for each size of latency")
	f.BoolVar(&o.bandwidth, "bandwidth", false, "client: measure bandwidth (both if neither is given)")
	f.BoolVar(&o.latency, "latency", false, "client: measure latency")
	f.BoolVar(&o.sleep, "sleep", false, "client: both sides sleep while they wait, else they spin")
	f.BoolVar(&o.json, "json", false, "client: JSON, times in nanoseconds")
	f.BoolVar(&o.perftest, "perftest", false, "the other end is ib_send_bw or ib_send_lat -c UD")
	f.StringVar(&o.group, "group", "", "perftest: multicast `address` to receive from")
	f.IntVar(&o.rate, "rate", 0, "perftest, bandwidth: `messages` a second to send; 0: as fast as it goes")
	f.DurationVarP(&o.timeout, "timeout", "W", replyTimeout, "perftest: how long to wait until messages count as lost")
}

// check finds mistakes before anything is opened.
func (o *perfOptions) check(cmd *cobra.Command) error {
	if err := o.meetFlags.check(); err != nil {
		return err
	}
	if err := o.checkSides(cmd); err != nil {
		return err
	}
	switch {
	case o.duration <= 0 || o.duration > maxDuration:
		return fmt.Errorf("--duration %v: more than 0, at most %v", o.duration, maxDuration)
	case o.trips < 1 || o.trips > maxTrips:
		return fmt.Errorf("--count %d: 1 to %d round trips", o.trips, maxTrips)
	}
	return o.checkSizes()
}

// checkSides finds flags that are for another side or peer.
func (o *perfOptions) checkSides(cmd *cobra.Command) error {
	if o.perftest {
		return o.checkPerftest(cmd)
	}
	for _, flag := range perftestFlags {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for --perftest", flag)
		}
	}
	others, side := clientFlags, "client: name the HOST to measure against"
	if o.host != "" {
		others, side = serverFlags, "server: leave out HOST"
	}
	for _, flag := range others {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for the %s", flag, side)
		}
	}
	return nil
}

func (o *perfOptions) checkSizes() error {
	if len(o.sizes) == 0 || 2*len(o.sizes) > maxTests {
		return fmt.Errorf("--sizes: 1 to %d of them", maxTests/2)
	}
	for _, size := range o.sizes {
		if size < 0 || size > 4096 {
			return fmt.Errorf("--sizes %d: 0 to 4096 bytes, the largest RDMA MTU", size)
		}
	}
	return nil
}

// tests is the list of what to measure.
func (o *perfOptions) tests() (tests []test) {
	for _, kind := range []testKind{bandwidth, latency} {
		if !o.wants(kind) {
			continue
		}
		for _, size := range o.sizes {
			tests = append(tests, test{Kind: kind, Size: size, Sleep: o.sleep})
		}
	}
	return tests
}

// wants says whether to measure something: both, if neither was asked for.
func (o *perfOptions) wants(kind testKind) bool {
	if o.bandwidth == o.latency {
		return true
	}
	return o.bandwidth == (kind == bandwidth)
}

func (o *perfOptions) run(cmd *cobra.Command) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	run := runClient
	switch {
	case o.perftest:
		run = runPerftest
	case o.host == "":
		run = runServer
	}
	return d.use(cmd.Context(), func(ctx context.Context) error { return run(ctx, d, o.path(), o) })
}

// side describes this end, sending from an address.
func (d *device) side(address string) side {
	return side{Device: d.attr.Name, Address: address, MTU: d.mtu, XDP: d.attr.XDPMode, AFXDP: d.attr.AFXDPMode}
}
