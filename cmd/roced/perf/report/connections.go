package report

import (
	"fmt"
	"strings"

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

// Packets are what a side's card has sent for its connections, why some of it again, and what it knows of congestion.
type Packets struct {
	Sent         uint64 `json:"sent"` // answers among them
	InTrains     uint64 `json:"sent_in_trains"`
	Again        uint64 `json:"sent_again"`
	Timeouts     uint64 `json:"timeouts"`
	Probes       uint64 `json:"probes"`        // sooner than a time-out, since answers took longer than they usually do
	SequenceNAKs uint64 `json:"sequence_naks"` // the peer misses something
	RNRNAKs      uint64 `json:"rnr_naks"`      // it has no receive posted
	ECNMarked    uint64 `json:"ecn_marked"`    // that came, and that a queue on their way has marked
	CNPSent      uint64 `json:"cnp_sent"`      // which say so to the peer
	CNPHandled   uint64 `json:"cnp_handled"`   // from the peer, which slow this side down
}

// again is empty if nothing was sent again.
func (p *Packets) again() string {
	if p == nil || p.Again == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s packets were sent again: %s time-outs, %s sooner than that since answers were late, %s times the peer missed one, %s times it was not ready",
		cli.Grouped(p.Again), cli.Grouped(p.Sent), cli.Grouped(p.Timeouts), cli.Grouped(p.Probes), cli.Grouped(p.SequenceNAKs), cli.Grouped(p.RNRNAKs))
}

// congestion is empty if there was none that anybody has told of. CNPs come to the side that sends, marks to the other.
func (p *Packets) congestion() string {
	if p == nil {
		return ""
	}
	var parts []string
	if p.CNPHandled > 0 {
		parts = append(parts, fmt.Sprintf("slowed down by congestion: %s CNPs came", cli.Grouped(p.CNPHandled)))
	}
	if p.ECNMarked > 0 {
		parts = append(parts, fmt.Sprintf("%s packets came with the mark of a congested queue (ECN), and %s CNPs told the peer", cli.Grouped(p.ECNMarked), cli.Grouped(p.CNPSent)))
	}
	return strings.Join(parts, "; ")
}
