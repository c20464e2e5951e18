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

// Options is the command line of perf.
type Options struct {
	meet.Flags

	// of the server
	Once  bool
	Quiet time.Duration // traffic.QuietLimit, but for tests

	// of the client
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
	Rate     int // messages a second, 0 for as fast as it goes
	Timeout  time.Duration

	// with connections
	RC, uc    bool
	op        string
	Operation connection.Operation // of op
	Pairs     int                  // of queue pairs
	Depth     int                  // requests of each that are outstanding at most
	MTU       int                  // of the path; 0: what both ports have

	Out, ErrOut io.Writer
}

// The flags that only one side has.
var (
	clientFlags = []string{"sizes", "duration", "count", "bandwidth", "latency", "sleep", "json"}
	serverFlags = []string{"once"}

	perftestFlags   = []string{"group", "rate", "timeout"}
	connectionFlags = []string{"op", "qps", "depth", "mtu"}
)

// Check finds mistakes before anything is opened.
func (o *Options) Check(cmd *cobra.Command) error {
	if err := errors.Join(o.Flags.Check(), o.Waiting.Check()); err != nil {
		return err
	}
	if err := o.checkSides(cmd); err != nil {
		return err
	}
	switch {
	case o.Duration <= 0 || o.Duration > cli.MaxDuration:
		return fmt.Errorf("--duration %v: more than 0, at most %v", o.Duration, cli.MaxDuration)
	case o.Trips < 1 || o.Trips > pingpong.MaxTrips:
		return fmt.Errorf("--count %d: 1 to %d %s", o.Trips, pingpong.MaxTrips, o.counted())
	}
	return o.checkSizes()
}

// counted is what --count is a number of.
func (o *Options) counted() string {
	if o.oneRun() && o.Kind() == protocol.Bandwidth {
		return "messages"
	}
	return "round trips"
}

// checkSides finds flags that are for another side or peer.
func (o *Options) checkSides(cmd *cobra.Command) error {
	if o.Connects() {
		return o.checkConnections(cmd)
	}
	for _, flag := range connectionFlags {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for --rc and --uc", flag)
		}
	}
	if o.Perftest {
		return o.checkPerftest(cmd)
	}
	for _, flag := range perftestFlags {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for --perftest", flag)
		}
	}
	others, side := clientFlags, "client: name the HOST to measure against"
	if o.Host != "" {
		others, side = serverFlags, "server: leave out HOST"
	}
	for _, flag := range others {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for the %s", flag, side)
		}
	}
	return nil
}

func (o *Options) checkSizes() error {
	if len(o.Sizes) == 0 || 2*len(o.Sizes) > protocol.MaxTests {
		return fmt.Errorf("--sizes: give 1 to %d sizes", protocol.MaxTests/2)
	}
	for _, size := range o.Sizes {
		switch {
		case o.Connects() && (size < 0 || size > maxMessage):
			return fmt.Errorf("--sizes %d: 0 to %d bytes", size, maxMessage)
		case !o.Connects() && (size < 0 || size > 4096):
			return fmt.Errorf("--sizes %d: 0 to 4096 bytes, the largest RDMA MTU; more with --rc and --uc", size)
		}
	}
	return nil
}

// Tests is the list of what to measure.
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

// wants says whether to measure something: both, if neither was asked for.
func (o *Options) wants(kind protocol.TestKind) bool {
	if o.bandwidth == o.latency {
		return true
	}
	return o.bandwidth == (kind == protocol.Bandwidth)
}
