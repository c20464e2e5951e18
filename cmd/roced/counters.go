package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
)

// counter is one place where packets of a device can end.
type counter struct {
	Place   string // XDP, socket, engine, or link: the interface itself
	Name    string
	Packets uint64
	Lost    bool // packets that were for us, and were not delivered; each is in one such counter
}

// counters is all counters of a device, always in the same order: every number that a
// command prints, and its name, is from here.
func (d *device) counters() ([]counter, error) {
	card, err := d.cardCounters()
	if err != nil {
		return nil, err
	}
	link, err := d.linkCounters()
	return append(card, link...), err
}

func (d *device) cardCounters() (all []counter, err error) {
	s, err := d.card.Statistics()
	if err != nil {
		return nil, err
	}
	for _, c := range s.All() {
		all = append(all, counter{c.Place, c.Name, c.Value, c.Lost})
	}
	return all, nil
}

// linkCounters is what the interface itself lost (ip -s link). It counts packets of
// all kinds, and on veth repeats what the socket lost: to be shown beside the others, and
// never to be added to them. An interface that is gone has none.
func (d *device) linkCounters() ([]counter, error) {
	link, err := d.links.LinkByName(d.attr.Name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("counters of interface %s: %w", d.attr.Name, err)
	}
	s := link.Attrs().Statistics
	if s == nil {
		s = &netlink.LinkStatistics{}
	}
	return []counter{
		{"link", "rx_dropped", s.RxDropped, false},
		{"link", "rx_missed", s.RxMissedErrors, false},
		{"link", "tx_dropped", s.TxDropped, false},
	}, nil
}

// since is what was counted after before was read.
func since(before, after []counter) []counter {
	changed := make([]counter, len(after))
	for i, c := range after {
		c.Packets -= before[i].Packets
		changed[i] = c
	}
	return changed
}

// losses is the packets in the counters of lost ones, by place and name.
func losses(all []counter) map[string]uint64 {
	return named(all, func(c counter) bool { return c.Lost })
}

// linkLosses is what the interface lost, nil if it has no counters.
func linkLosses(all []counter) map[string]uint64 {
	isLink := func(c counter) bool { return c.Place == "link" }
	if !slices.ContainsFunc(all, isLink) {
		return nil
	}
	return named(all, isLink)
}

// dropsSince is where messages that were lost here would be found.
func (d *device) dropsSince(before []counter) string {
	after, err := d.counters()
	if err != nil {
		return err.Error()
	}
	changed := since(before, after)
	drops, link := losses(changed), linkLosses(changed)
	text := "dropped here: none; see the peer's counters"
	if len(drops) > 0 {
		text = "dropped here: " + list(drops)
	}
	if len(link) > 0 {
		text += "; the interface counts: " + list(link)
	}
	return text
}

func named(all []counter, wanted func(counter) bool) map[string]uint64 {
	packets := map[string]uint64{}
	for _, c := range all {
		if c.Packets > 0 && wanted(c) {
			packets[c.Place+" "+c.Name] = c.Packets
		}
	}
	return packets
}

func sum(packets map[string]uint64) (total uint64) {
	for _, n := range packets {
		total += n
	}
	return total
}

// count is the counter of a name.
func count(all []counter, place, name string) uint64 {
	for _, c := range all {
		if c.Place == place && c.Name == name {
			return c.Packets
		}
	}
	return 0
}
