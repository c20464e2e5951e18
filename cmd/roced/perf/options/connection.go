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
	maxMessage = 8 << 20 // perftest's, over a connection
	maxPairs   = 256
	maxDepth   = 16384
)

// Connects says that there are connections, and not datagrams.
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

// Reports says whether the client tells a server, whose program has nothing to do, what it has measured.
func (o *Options) Reports() bool {
	return o.Connects() && o.Kind() == protocol.Bandwidth && o.Operation != connection.Send
}

// Program is perftest's, as it has to be called at the other end.
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

// Either says who the other end may be. Over connections roced perf speaks as perftest does.
func (o *Options) Either(perftest string) string {
	if o.Connects() {
		return "roced perf or " + perftest
	}
	return perftest
}

// Peer is what may have been called at the other end.
func (o *Options) Peer() string {
	if o.Connects() {
		return fmt.Sprintf("roced perf %s, or %s", o.Mode(), o.Program())
	}
	return o.Program()
}

// Shared are the flags that both sides have to be given alike, since nothing tells one side the other's.
func (o *Options) Shared() string {
	if o.Connects() {
		return "-s, -n, -q and -m"
	}
	return "-s and -n"
}

// checkConnections finds what does not go with connections, or with one kind of them.
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
		return errors.New("--uc excludes --rc: a connection is reliable or not")
	case o.Group != "" || o.Rate != 0:
		return errors.New("--group and --rate are for datagrams")
	case o.uc && o.Operation.HasAnswer():
		return fmt.Errorf("--op %s needs --rc: unreliable connections have no answers", o.Operation)
	case o.Pairs < 1 || o.Pairs > maxPairs:
		return fmt.Errorf("--qps %d: 1 to %d", o.Pairs, maxPairs)
	case o.Depth < 1 || o.Depth > maxDepth:
		return fmt.Errorf("--depth %d: 1 to %d requests", o.Depth, maxDepth)
	}
	if err := o.checkPerftest(cmd); err != nil {
		return err
	}
	return o.checkOperation()
}

// SeesWrites says that the command waits for what a peer writes into its memory.
func (o *Options) SeesWrites() bool {
	return o.Connects() && o.Operation == connection.Write && o.Kind() == protocol.Latency
}

// checkOperation finds what one operation cannot do.
func (o *Options) checkOperation() error {
	write := o.SeesWrites()
	switch {
	case o.Kind() == protocol.Latency && o.Pairs > 1:
		return errors.New("--latency takes one queue pair: leave out --qps")
	case o.Operation.IsAtomic() && o.OwnSizes && o.Sizes[0] != connection.AtomicSize:
		return fmt.Errorf("--sizes %d: an atomic has %d bytes", o.Sizes[0], connection.AtomicSize)
	case write && o.Waiting.Sleep:
		return errors.New("--sleep: nothing wakes a program whose memory is written; leave it out, or measure --op send")
	case write && o.OwnSizes && o.Sizes[0] == 0:
		return errors.New("--sizes 0: the peer cannot see a WRITE of no bytes; give 1 or more")
	}
	return nil
}
