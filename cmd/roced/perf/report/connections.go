package report

import (
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/cli"
)

// Over is what a report says of connections.
type Over struct {
	Service   string `json:"service"`   // RC or UC
	Operation string `json:"operation"` // send, write, read or atomic
	Pairs     int    `json:"queue_pairs"`
	Depth     int    `json:"depth"` // requests of a queue pair that are outstanding at most
	PathMTU   int    `json:"path_mtu"`
}

func (o *Over) String() string {
	pairs := "1 queue pair"
	if o.Pairs > 1 {
		pairs = fmt.Sprintf("%d queue pairs", o.Pairs)
	}
	return fmt.Sprintf("%s over %s, %s, path MTU %d", o.Operation, o.Service, pairs, o.PathMTU)
}

// Packets are what a side's card has sent for its connections, and why some of it again.
type Packets struct {
	Sent         uint64 `json:"sent"` // answers among them
	InTrains     uint64 `json:"sent_in_trains"`
	Again        uint64 `json:"sent_again"`
	Timeouts     uint64 `json:"timeouts"`
	Probes       uint64 `json:"probes"`        // sooner than a time-out, since answers took longer than they usually do
	SequenceNAKs uint64 `json:"sequence_naks"` // the peer misses something
	RNRNAKs      uint64 `json:"rnr_naks"`      // it has no receive posted
}

// again is empty if nothing was sent again.
func (p *Packets) again() string {
	if p == nil || p.Again == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s packets were sent again: %s time-outs, %s sooner than that since answers were late, %s times the peer missed one, %s times it was not ready",
		cli.Grouped(p.Again), cli.Grouped(p.Sent), cli.Grouped(p.Timeouts), cli.Grouped(p.Probes), cli.Grouped(p.SequenceNAKs), cli.Grouped(p.RNRNAKs))
}
