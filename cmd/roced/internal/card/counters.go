// SPDX-License-Identifier: Apache-2.0

package card

import (
	"errors"
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/vishvananda/netlink"
)

// Counters returns all counters of a device, always in the same order. All numbers and counter names that
// commands print come from it.
func (d *Device) Counters() ([]Counter, error) {
	card, err := d.cardCounters()
	if err != nil {
		return nil, err
	}
	link, err := d.linkCounters()
	return append(card, link...), err
}

func (d *Device) cardCounters() (all []Counter, err error) {
	read, err := d.Context.Counters()
	if err != nil {
		return nil, err
	}
	for _, c := range read {
		all = append(all, Counter{c.Place, c.Name, c.Value, c.Lost})
	}
	return all, nil
}

// linkCounters returns the losses of the interface (ip -s link). They include all kinds of packets and, on
// veth, the socket's losses again, so commands print them separately. A removed interface, an in-memory
// network and a device of the service have none.
func (d *Device) linkCounters() ([]Counter, error) {
	if d.links == nil {
		return nil, nil
	}
	link, err := d.links.LinkByName(d.Attr.Name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("counters of interface %s: %w", d.Attr.Name, err)
	}
	s := link.Attrs().Statistics
	if s == nil {
		s = &netlink.LinkStatistics{}
	}
	return []Counter{
		{"link", "rx_dropped", s.RxDropped, false},
		{"link", "rx_missed", s.RxMissedErrors, false},
		{"link", "tx_dropped", s.TxDropped, false},
	}, nil
}

// DropsSince describes the losses since an earlier reading.
func (d *Device) DropsSince(before []Counter) string {
	after, err := d.Counters()
	if err != nil {
		return err.Error()
	}
	changed := Since(before, after)
	drops, link := Losses(changed), LinkLosses(changed)
	text := "dropped here: none (check the counters of the peer)"
	if len(drops) > 0 {
		text = "dropped here: " + cli.List(drops)
	}
	if len(link) > 0 {
		text += "; interface counters: " + cli.List(link)
	}
	return text
}
