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

// perftestCount is perftest's own number of messages, and perftestWrites ib_write_bw's.
const (
	perftestCount  = 1000
	perftestWrites = 5000
)

// TakePerftest puts perftest's defaults in place of perf's own.
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

// oneRun says that there is one run, as perftest's programs have it: of one kind and size, with a number of messages.
func (o *Options) oneRun() bool { return o.Perftest || o.Connects() }

// Mode is the flag that has the other end be perftest, or speak as it does.
func (o *Options) Mode() string {
	switch {
	case o.RC:
		return "--rc"
	case o.uc:
		return "--uc"
	}
	return "--perftest"
}

// Kind is what is measured, where that is one thing.
func (o *Options) Kind() protocol.TestKind {
	if o.latency {
		return protocol.Latency
	}
	return protocol.Bandwidth
}

// checkPerftest finds what does not go with perftest.
func (o *Options) checkPerftest(cmd *cobra.Command) error {
	for _, flag := range []string{"duration", "once"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s does not go with --perftest, --rc and --uc, which do --count messages and end", flag)
		}
	}
	sender := o.Kind() == protocol.Bandwidth && o.Host != ""
	switch {
	case o.bandwidth && o.latency:
		return fmt.Errorf("%s measures one thing: give --bandwidth or --latency, not both", o.Mode())
	case o.bandwidth == o.latency:
		return fmt.Errorf("%s needs --bandwidth or --latency", o.Mode())
	case o.OwnSizes && len(o.Sizes) != 1:
		return errors.New("--perftest, --rc and --uc measure one size: give --sizes one number")
	case o.Timeout <= 0 || o.Timeout > cli.MaxDuration:
		return fmt.Errorf("--timeout %v: more than 0, at most %v", o.Timeout, cli.MaxDuration)
	case o.Rate < 0 || o.Rate > cli.MaxRate:
		return fmt.Errorf("--rate %d: 0 to %d messages a second", o.Rate, cli.MaxRate)
	case o.Rate > 0 && !sender:
		return errors.New("--rate is for the client of --bandwidth, which sends")
	case o.Group != "" && sender:
		return errors.New("--group: the client of --bandwidth receives nothing; the server names the group")
	}
	if o.Group != "" {
		_, err := card.ParseGroup("--group", o.Group, o.Device)
		return err
	}
	return nil
}
