package perf

import (
	"errors"
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/spf13/cobra"
)

// perftestCount is perftest's own number of messages, and perftestWrites ib_write_bw's.
const (
	perftestCount  = 1000
	perftestWrites = 5000
)

// takePerftest puts perftest's defaults in place of perf's own.
func (o *options) takePerftest(cmd *cobra.Command) {
	o.ownSizes = cmd.Flags().Changed("sizes")
	if !o.perftest && !o.connects() || cmd.Flags().Changed("count") {
		return
	}
	o.trips = perftestCount
	if o.connects() && o.op == string(connection.Write) && o.kind() == bandwidth {
		o.trips = perftestWrites
	}
}

// kind is what is measured, where that is one thing.
func (o *options) kind() testKind {
	if o.latency {
		return latency
	}
	return bandwidth
}

// checkPerftest finds what does not go with perftest.
func (o *options) checkPerftest(cmd *cobra.Command) error {
	for _, flag := range []string{"duration", "once"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s does not go with --perftest, --rc and --uc, which do --count messages and end", flag)
		}
	}
	sender := o.kind() == bandwidth && o.Host != ""
	switch {
	case o.bandwidth == o.latency:
		return errors.New("--perftest, --rc and --uc: one of --bandwidth (ib_send_bw) and --latency (ib_send_lat)")
	case o.ownSizes && len(o.sizes) != 1:
		return errors.New("--perftest, --rc and --uc: one of --sizes")
	case o.timeout <= 0 || o.timeout > cli.MaxDuration:
		return fmt.Errorf("--timeout %v: more than 0, at most %v", o.timeout, cli.MaxDuration)
	case o.rate < 0 || o.rate > cli.MaxRate:
		return fmt.Errorf("--rate %d: 0 to %d messages a second", o.rate, cli.MaxRate)
	case o.rate > 0 && !sender:
		return errors.New("--rate is for the client of --bandwidth, which sends")
	case o.group != "" && sender:
		return errors.New("--group: the client of --bandwidth receives nothing; the server names the group")
	}
	if o.group != "" {
		_, err := card.ParseGroup(o.group, o.Device)
		return err
	}
	return nil
}
