// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/verbs"
	"github.com/spf13/cobra"
)

const (
	maxMessage = 8 << 20 // perftest's limit for connections
	maxPairs   = 256
	maxDepth   = 16384
)

// Connects reports whether the test uses connections instead of datagrams.
func (o *Options) Connects() bool { return o.RC || o.uc }

func (o *Options) Service() verbs.QPType {
	switch {
	case o.RC:
		return verbs.QPTypeRC
	case o.uc:
		return verbs.QPTypeUC
	}
	return verbs.QPTypeUD
}

// Reports reports whether the client sends its results to a server whose program takes no part in the
// test.
func (o *Options) Reports() bool {
	return o.Connects() && o.Kind() == protocol.Bandwidth && o.Operation != connection.Send
}

// Program returns the perftest command that the peer has to run.
func (o *Options) Program() string {
	kind, operation := "bw", connection.Send
	if o.Kind() == protocol.Latency {
		kind = "lat"
	}
	if o.Connects() {
		operation = o.Operation
	}
	if operation == connection.Swap {
		return fmt.Sprintf("ib_atomic_%s -A CMP_AND_SWAP -c %v", kind, o.Service())
	}
	return fmt.Sprintf("ib_%s_%s -c %v", operation, kind, o.Service())
}

// Either returns the programs that the peer may be. Over connections roced perf uses perftest's protocol.
func (o *Options) Either(perftest string) string {
	if o.Connects() {
		return "roced perf or " + perftest
	}
	return perftest
}

// Peer returns the commands that the peer may have been started with.
func (o *Options) Peer() string {
	if o.Connects() {
		return fmt.Sprintf("roced perf %s, or %s", o.Mode(), o.Program())
	}
	return o.Program()
}

// Shared returns the flags that must be equal on both sides, because they are not exchanged.
func (o *Options) Shared() string {
	if o.Connects() {
		return "-s, -n, -q and -m"
	}
	return "-s and -n"
}

// checkConnections rejects flags that cannot be combined with connections, or with their kind.
func (o *Options) checkConnections(cmd *cobra.Command) (err error) {
	if o.Operation, err = connection.ParseOperation(o.op); err != nil {
		return err
	}
	if o.MTU != 0 {
		if _, err := card.ParseMTU(o.MTU); err != nil {
			return err
		}
	}
	switch {
	case o.RC && o.uc:
		return errors.New("--uc and --rc cannot be used together")
	case o.Group != "" || o.Rate != 0:
		return errors.New("--group and --rate can only be used with datagrams")
	case o.uc && o.Operation.HasAnswer():
		return fmt.Errorf("--op %s needs --rc: unreliable connections have no responses", o.Operation)
	case o.Pairs < 1 || o.Pairs > maxPairs:
		return fmt.Errorf("--qps must be 1 to %[2]d: %[1]d", o.Pairs, maxPairs)
	case o.Depth < 1 || o.Depth > maxDepth:
		return fmt.Errorf("--depth must be 1 to %[2]d requests: %[1]d", o.Depth, maxDepth)
	case o.AckTimeout <= 0:
		return fmt.Errorf("--ack-timeout must be positive: %v", o.AckTimeout)
	case o.uc && cmd.Flags().Changed("ack-timeout"):
		return errors.New("--ack-timeout requires --rc: unreliable connections send no acknowledgments")
	}
	if err := o.checkPerftest(cmd); err != nil {
		return err
	}
	return o.checkOperation()
}

// SeesWrites reports whether the command waits for data that the peer writes into its memory.
func (o *Options) SeesWrites() bool {
	return o.Connects() && o.Operation == connection.Write && o.Kind() == protocol.Latency
}

// checkOperation rejects flags that cannot be combined with the operation.
func (o *Options) checkOperation() error {
	write := o.SeesWrites()
	switch {
	case o.Kind() == protocol.Latency && o.Pairs > 1:
		return errors.New("--latency uses one queue pair: omit --qps")
	case o.Operation.IsAtomic() && o.OwnSizes && o.Sizes[0] != connection.AtomicSize:
		return fmt.Errorf("--sizes must be %[2]d for atomics: %[1]d", o.Sizes[0], connection.AtomicSize)
	case write && o.Waiting.Sleep:
		return errors.New("--sleep cannot be used here: a WRITE does not wake up the peer's program; omit it, or measure --op send")
	case write && o.OwnSizes && o.Sizes[0] == 0:
		return errors.New("--sizes must be 1 or more for WRITEs: the peer cannot detect an empty one")
	}
	return nil
}
