// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/cli"
)

// Over describes the connections of a test.
type Over struct {
	Service   string `json:"service"`   // RC or UC
	Operation string `json:"operation"` // send, write, read or atomic
	Pairs     int    `json:"queue_pairs"`
	Depth     int    `json:"depth"` // maximum number of outstanding requests per queue pair
	PathMTU   int    `json:"path_mtu"`
}

func (o *Over) String() string {
	pairs := "1 queue pair"
	if o.Pairs > 1 {
		pairs = fmt.Sprintf("%d queue pairs", o.Pairs)
	}
	return fmt.Sprintf("%s over %s, %s, path MTU %d", o.Operation, o.Service, pairs, o.PathMTU)
}

// Packets counts the packets that one side's card has sent for its connections, retransmissions by cause, and
// congestion events.
type Packets struct {
	Sent         uint64 `json:"sent"` // including responses
	InTrains     uint64 `json:"sent_in_trains"`
	Again        uint64 `json:"sent_again"`
	Timeouts     uint64 `json:"timeouts"`
	Probes       uint64 `json:"probes"`        // retransmissions before the timeout, because ACKs were late
	SequenceNAKs uint64 `json:"sequence_naks"` // the peer missed a packet
	RNRNAKs      uint64 `json:"rnr_naks"`      // the peer had no receive posted
	ECNMarked    uint64 `json:"ecn_marked"`    // received with an ECN mark of a queue on the path
	CNPSent      uint64 `json:"cnp_sent"`      // sent to the peer for these
	CNPHandled   uint64 `json:"cnp_handled"`   // received from the peer; they slow this side down
}

// again describes retransmissions. It is empty if there were none.
func (p *Packets) again() string {
	if p == nil || p.Again == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s packets were retransmitted: %s timeouts, %s earlier because of late ACKs, %s sequence NAKs, %s RNR NAKs",
		cli.Grouped(p.Again), cli.Grouped(p.Sent), cli.Grouped(p.Timeouts), cli.Grouped(p.Probes), cli.Grouped(p.SequenceNAKs), cli.Grouped(p.RNRNAKs))
}

// congestion describes congestion events. It is empty if there were none. CNPs arrive at the sender, marks at the
// receiver.
func (p *Packets) congestion() string {
	if p == nil {
		return ""
	}
	var parts []string
	if p.CNPHandled > 0 {
		parts = append(parts, fmt.Sprintf("slowed down by congestion: %s CNPs received", cli.Grouped(p.CNPHandled)))
	}
	if p.ECNMarked > 0 {
		parts = append(parts, fmt.Sprintf("%s packets received with a congestion mark (ECN), %s CNPs sent to the peer", cli.Grouped(p.ECNMarked), cli.Grouped(p.CNPSent)))
	}
	return strings.Join(parts, "; ")
}
