package perf

import (
	"errors"
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/roced/roced/verbs"
	"github.com/spf13/cobra"
)

const (
	maxMessage = 8 << 20 // perftest's, over a connection
	maxPairs   = 256
	maxDepth   = 16384
)

// connects says that there are connections, and not datagrams.
func (o *options) connects() bool { return o.rc || o.uc }

func (o *options) service() verbs.QPType {
	switch {
	case o.rc:
		return verbs.QPTypeRC
	case o.uc:
		return verbs.QPTypeUC
	}
	return verbs.QPTypeUD
}

// reports says whether the client tells a server, whose program has nothing to do, what it has measured.
func (o *options) reports() bool {
	return o.connects() && o.kind() == bandwidth && o.operation != connection.Send
}

// program is perftest's, as it has to be called at the other end.
func (o *options) program() string {
	kind, operation := "bw", connection.Send
	if o.kind() == latency {
		kind = "lat"
	}
	if o.connects() {
		operation = o.operation
	}
	if operation == connection.Swap {
		return fmt.Sprintf("ib_atomic_%s -A CMP_AND_SWAP -c %v", kind, o.service())
	}
	return fmt.Sprintf("ib_%s_%s -c %v", operation, kind, o.service())
}

// either says who the other end may be. Over connections roced perf speaks as perftest does.
func (o *options) either(perftest string) string {
	if o.connects() {
		return "roced perf or " + perftest
	}
	return perftest
}

// checkConnections finds what does not go with connections, or with one kind of them.
func (o *options) checkConnections(cmd *cobra.Command) (err error) {
	if o.operation, err = connection.ParseOperation(o.op); err != nil {
		return err
	}
	if o.mtu != 0 {
		if _, err := card.ParseMTU(o.mtu); err != nil {
			return err
		}
	}
	switch {
	case o.rc && o.uc:
		return errors.New("--uc excludes --rc: a connection is reliable or not")
	case o.group != "" || o.rate != 0:
		return errors.New("--group and --rate are for datagrams")
	case o.uc && o.operation.HasAnswer():
		return fmt.Errorf("--op %s needs --rc: unreliable connections have no answers", o.operation)
	case o.pairs < 1 || o.pairs > maxPairs:
		return fmt.Errorf("--qps %d: 1 to %d", o.pairs, maxPairs)
	case o.depth < 1 || o.depth > maxDepth:
		return fmt.Errorf("--depth %d: 1 to %d requests", o.depth, maxDepth)
	}
	if err := o.checkPerftest(cmd); err != nil {
		return err
	}
	return o.checkOperation()
}

// seesWrites says that the command waits for what a peer writes into its memory.
func (o *options) seesWrites() bool {
	return o.connects() && o.operation == connection.Write && o.kind() == latency
}

// checkOperation finds what one operation cannot do.
func (o *options) checkOperation() error {
	write := o.seesWrites()
	switch {
	case o.kind() == latency && o.pairs > 1:
		return errors.New("--qps: one for --latency")
	case o.operation.IsAtomic() && o.ownSizes && o.sizes[0] != connection.AtomicSize:
		return fmt.Errorf("--sizes %d: an atomic is of %d bytes", o.sizes[0], connection.AtomicSize)
	case write && o.waiting.Sleep:
		return errors.New("--sleep: nothing wakes a program whose memory is written; leave it out, or measure --op send")
	case write && o.ownSizes && o.sizes[0] == 0:
		return errors.New("--sizes 0: nobody sees a WRITE of nothing; 1 or more")
	}
	return nil
}
