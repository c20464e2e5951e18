// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/internal/pingpong"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/spf13/cobra"
)

// Options holds the command line of perf.
type Options struct {
	meet.Flags

	// server
	Once  bool
	Quiet time.Duration // traffic.QuietLimit, except in tests

	// client
	Sizes     []int
	Duration  time.Duration
	Trips     int
	bandwidth bool
	latency   bool
	Waiting   card.Waiting
	JSON      bool

	// with --perftest
	Perftest bool
	OwnSizes bool // --sizes was given
	Group    string
	Rate     int // messages per second; 0: unlimited
	Timeout  time.Duration

	// with connections
	RC, uc     bool
	op         string
	Operation  connection.Operation // parsed op
	Pairs      int                  // number of queue pairs
	Depth      int                  // maximum number of outstanding requests of each
	MTU        int                  // path MTU; 0: that of both ports
	AckTimeout time.Duration        // local ACK timeout

	Out, ErrOut io.Writer
}

// Flags of only one side.
var (
	clientFlags = []string{"sizes", "duration", "count", "bandwidth", "latency", "sleep", "json"}
	serverFlags = []string{"once"}

	perftestFlags   = []string{"group", "rate", "timeout"}
	connectionFlags = []string{"op", "qps", "depth", "mtu", "ack-timeout"}
)

// Check rejects invalid flags before anything is opened.
func (o *Options) Check(cmd *cobra.Command) error {
	if err := errors.Join(o.Flags.Check(), o.Waiting.Check()); err != nil {
		return err
	}
	if err := o.checkSides(cmd); err != nil {
		return err
	}
	switch {
	case o.Duration <= 0 || o.Duration > cli.MaxDuration:
		return fmt.Errorf("--duration must be more than 0 and at most %[2]v: %[1]v", o.Duration, cli.MaxDuration)
	case o.Trips < 1 || o.Trips > pingpong.MaxTrips:
		return fmt.Errorf("--count must be 1 to %[2]d %[3]s: %[1]d", o.Trips, pingpong.MaxTrips, o.counted())
	}
	return o.checkSizes()
}

// counted returns the unit of --count.
func (o *Options) counted() string {
	if o.oneRun() && o.Kind() == protocol.Bandwidth {
		return "messages"
	}
	return "round trips"
}

// checkSides rejects flags that belong to the other side or to another kind of peer.
func (o *Options) checkSides(cmd *cobra.Command) error {
	if o.Connects() {
		return o.checkConnections(cmd)
	}
	for _, flag := range connectionFlags {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s can only be used with --rc or --uc", flag)
		}
	}
	if o.Perftest {
		return o.checkPerftest(cmd)
	}
	for _, flag := range perftestFlags {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s can only be used with --perftest", flag)
		}
	}
	others, side := clientFlags, "client: add the HOST of the server"
	if o.Host != "" {
		others, side = serverFlags, "server: omit HOST"
	}
	for _, flag := range others {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s can only be used on the %s", flag, side)
		}
	}
	return nil
}

func (o *Options) checkSizes() error {
	if len(o.Sizes) == 0 || 2*len(o.Sizes) > protocol.MaxTests {
		return fmt.Errorf("--sizes must have 1 to %d sizes", protocol.MaxTests/2)
	}
	for _, size := range o.Sizes {
		switch {
		case o.Connects() && (size < 0 || size > maxMessage):
			return fmt.Errorf("--sizes must be 0 to %[2]d bytes: %[1]d", size, maxMessage)
		case !o.Connects() && (size < 0 || size > 4096):
			return fmt.Errorf("--sizes must be 0 to 4096 bytes, the maximum RDMA MTU (--rc and --uc allow more): %d", size)
		}
	}
	return nil
}

// Tests returns the measurements to run.
func (o *Options) Tests() (tests []protocol.Test) {
	for _, kind := range []protocol.TestKind{protocol.Bandwidth, protocol.Latency} {
		if !o.wants(kind) {
			continue
		}
		for _, size := range o.Sizes {
			tests = append(tests, protocol.Test{Kind: kind, Size: size, Sleep: o.Waiting.Sleep})
		}
	}
	return tests
}

// wants reports whether to measure kind. Without --bandwidth and --latency both are measured.
func (o *Options) wants(kind protocol.TestKind) bool {
	if o.bandwidth == o.latency {
		return true
	}
	return o.bandwidth == (kind == protocol.Bandwidth)
}
