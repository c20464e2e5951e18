package card

import (
	"errors"
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/vishvananda/netlink"
)

// Counters is all counters of a device, always in the same order: every number that a
// command prints, and its name, is from here.
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

// linkCounters is what the interface itself lost (ip -s link). It counts packets of all kinds, and on
// veth counts the socket's losses again, so it is shown beside the other counters and never added to
// them. An interface that is gone, a network in memory
// and the service's device have none.
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

// DropsSince is where messages that were lost here would be found.
func (d *Device) DropsSince(before []Counter) string {
	after, err := d.Counters()
	if err != nil {
		return err.Error()
	}
	changed := Since(before, after)
	drops, link := Losses(changed), LinkLosses(changed)
	text := "dropped here: none; see the peer's counters"
	if len(drops) > 0 {
		text = "dropped here: " + cli.List(drops)
	}
	if len(link) > 0 {
		text += "; the interface counts: " + cli.List(link)
	}
	return text
}
