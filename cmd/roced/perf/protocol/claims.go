// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
)

// Values from a server are not trusted: an impossible number is an error that names it, and texts
// are made printable before they go into a report.

const (
	// maxPackets exceeds the drops of any test, and is the largest integer that JSON readers
	// represent exactly.
	maxPackets = 1 << 53
	// maxNames is the maximum number of counters that a server may send.
	maxNames = 1000
)

// Checked returns the greeting's device with printable texts.
func (g *Greeting) Checked() (card.Side, error) {
	s := g.Server
	if s.MTU < 256 || s.MTU > 4096 {
		return card.Side{}, meet.Impossible("server.mtu", s.MTU)
	}
	s.Device, s.Address = meet.Printable(s.Device), meet.Printable(s.Address)
	s.Network, s.XDP, s.AFXDP = meet.Printable(s.Network), meet.Printable(s.XDP), meet.Printable(s.AFXDP)
	return s, nil
}

// Check validates the outcome of a bandwidth test against the number of messages sent and the time
// that sending took. It makes names printable.
func (o *Outcome) Check(sent uint64, took time.Duration) (err error) {
	switch {
	case o.Received > sent:
		return meet.Impossible("received", fmt.Sprintf("%s of %s sent", cli.Grouped(o.Received), cli.Grouped(sent)))
	case o.Elapsed < 0 || o.Elapsed > longest(took):
		return meet.Impossible("elapsed_ns", fmt.Sprintf("%d (%v)", int64(o.Elapsed), o.Elapsed))
	case o.Elapsed > 0 && o.Received > uint64(o.Elapsed)+card.Batch: // a batch counts as one arrival
		return meet.Impossible("elapsed_ns", fmt.Sprintf("%d for %s messages", int64(o.Elapsed), cli.Grouped(o.Received)))
	}
	var dropped, linkDropped error
	o.Drops, dropped = checkDrops("drops", o.Drops)
	o.Link, linkDropped = checkDrops("link_drops", o.Link)
	return errors.Join(dropped, linkDropped)
}

// longest returns the maximum time between first and last arrival: until the server must have
// responded. Sending time counts twice because clocks differ.
func longest(took time.Duration) time.Duration { return 2*took + meet.ReplyTimeout }

// checkDrops returns drops with printable names.
func checkDrops(field string, drops map[string]uint64) (map[string]uint64, error) {
	if drops == nil {
		return nil, nil // not known
	}
	if len(drops) > maxNames {
		return nil, meet.Impossible(field, fmt.Sprintf("of %d names", len(drops)))
	}
	total := uint64(0)
	printable := make(map[string]uint64, len(drops))
	for name, packets := range drops {
		if packets > maxPackets-total {
			return nil, meet.Impossible(field, fmt.Sprintf("%s %s", name, cli.Grouped(packets)))
		}
		total += packets
		printable[meet.Printable(name)] += packets
	}
	return printable, nil
}
