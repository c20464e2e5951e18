// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/spf13/cobra"
)

// Default numbers of messages of perftest, and of its ib_write_bw.
const (
	perftestCount  = 1000
	perftestWrites = 5000
)

// TakePerftest replaces perf's defaults with those of perftest.
func (o *Options) TakePerftest(cmd *cobra.Command) {
	o.OwnSizes = cmd.Flags().Changed("sizes")
	if !o.oneRun() || cmd.Flags().Changed("count") {
		return
	}
	o.Trips = perftestCount
	if o.Connects() && o.op == string(connection.Write) && o.Kind() == protocol.Bandwidth {
		o.Trips = perftestWrites
	}
}

// oneRun reports whether there is exactly one run, as with perftest's programs: one kind, one size, a number of
// messages.
func (o *Options) oneRun() bool { return o.Perftest || o.Connects() }

// Mode returns the flag that selects perftest, or its protocol, for the peer.
func (o *Options) Mode() string {
	switch {
	case o.RC:
		return "--rc"
	case o.uc:
		return "--uc"
	}
	return "--perftest"
}

// Kind returns the kind of measurement if there is only one.
func (o *Options) Kind() protocol.TestKind {
	if o.latency {
		return protocol.Latency
	}
	return protocol.Bandwidth
}

// checkPerftest rejects flags that cannot be combined with perftest.
func (o *Options) checkPerftest(cmd *cobra.Command) error {
	for _, flag := range []string{"duration", "once"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s cannot be used with --perftest, --rc and --uc, which send --count messages and end", flag)
		}
	}
	sender := o.Kind() == protocol.Bandwidth && o.Host != ""
	switch {
	case o.bandwidth && o.latency:
		return fmt.Errorf("%s makes one measurement: use --bandwidth or --latency, not both", o.Mode())
	case o.bandwidth == o.latency:
		return fmt.Errorf("%s needs --bandwidth or --latency", o.Mode())
	case o.OwnSizes && len(o.Sizes) != 1:
		return errors.New("--perftest, --rc and --uc measure one message size: use --sizes with one number")
	case o.Timeout <= 0 || o.Timeout > cli.MaxDuration:
		return fmt.Errorf("--timeout must be more than 0 and at most %[2]v: %[1]v", o.Timeout, cli.MaxDuration)
	case o.Rate < 0 || o.Rate > cli.MaxRate:
		return fmt.Errorf("--rate must be 0 to %[2]d messages per second: %[1]d", o.Rate, cli.MaxRate)
	case o.Rate > 0 && !sender:
		return errors.New("--rate is only for the client of --bandwidth, which is the sender")
	case o.Group != "" && sender:
		return errors.New("--group is only for receivers: use it on the server with --bandwidth")
	}
	if o.Group != "" {
		_, err := card.ParseGroup("--group", o.Group, o.Device)
		return err
	}
	return nil
}
