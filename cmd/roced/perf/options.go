package perf

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
	"github.com/spf13/cobra"
)

// options is the command line of perf.
type options struct {
	meet.Flags

	// of the server
	once  bool
	quiet time.Duration // quietLimit, but for tests

	// of the client
	sizes     []int
	duration  time.Duration
	trips     int
	bandwidth bool
	latency   bool
	waiting   card.Waiting
	json      bool

	// with --perftest
	perftest bool
	ownSizes bool // --sizes was given
	group    string
	rate     int // messages a second, 0 for as fast as it goes
	timeout  time.Duration

	// with connections
	rc, uc    bool
	op        string
	operation connection.Operation // of op
	pairs     int                  // of queue pairs
	depth     int                  // requests of each that are outstanding at most
	mtu       int                  // of the path; 0: what both ports have

	out, errOut io.Writer
}

// The flags that only one side has.
var (
	clientFlags = []string{"sizes", "duration", "count", "bandwidth", "latency", "sleep", "json"}
	serverFlags = []string{"once"}

	perftestFlags   = []string{"group", "rate", "timeout"}
	connectionFlags = []string{"op", "qps", "depth", "mtu"}
)

// check finds mistakes before anything is opened.
func (o *options) check(cmd *cobra.Command) error {
	if err := errors.Join(o.Flags.Check(), o.waiting.Check()); err != nil {
		return err
	}
	if err := o.checkSides(cmd); err != nil {
		return err
	}
	switch {
	case o.duration <= 0 || o.duration > cli.MaxDuration:
		return fmt.Errorf("--duration %v: more than 0, at most %v", o.duration, cli.MaxDuration)
	case o.trips < 1 || o.trips > pingpong.MaxTrips:
		return fmt.Errorf("--count %d: 1 to %d round trips", o.trips, pingpong.MaxTrips)
	}
	return o.checkSizes()
}

// checkSides finds flags that are for another side or peer.
func (o *options) checkSides(cmd *cobra.Command) error {
	if o.connects() {
		return o.checkConnections(cmd)
	}
	for _, flag := range connectionFlags {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for --rc and --uc", flag)
		}
	}
	if o.perftest {
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

func (o *options) checkSizes() error {
	if len(o.sizes) == 0 || 2*len(o.sizes) > maxTests {
		return fmt.Errorf("--sizes: 1 to %d of them", maxTests/2)
	}
	for _, size := range o.sizes {
		switch {
		case o.connects() && (size < 0 || size > maxMessage):
			return fmt.Errorf("--sizes %d: 0 to %d bytes", size, maxMessage)
		case !o.connects() && (size < 0 || size > 4096):
			return fmt.Errorf("--sizes %d: 0 to 4096 bytes, the largest RDMA MTU; more with --rc and --uc", size)
		}
	}
	return nil
}

// tests is the list of what to measure.
func (o *options) tests() (tests []test) {
	for _, kind := range []testKind{bandwidth, latency} {
		if !o.wants(kind) {
			continue
		}
		for _, size := range o.sizes {
			tests = append(tests, test{Kind: kind, Size: size, Sleep: o.waiting.Sleep})
		}
	}
	return tests
}

// wants says whether to measure something: both, if neither was asked for.
func (o *options) wants(kind testKind) bool {
	if o.bandwidth == o.latency {
		return true
	}
	return o.bandwidth == (kind == bandwidth)
}
