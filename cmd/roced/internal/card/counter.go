package card

import (
	"slices"
)

// Counter is one place where packets of a device can end.
type Counter struct {
	Place   string // XDP, socket, routers, engine, CM, or link: the interface itself
	Name    string
	Packets uint64
	Lost    bool // packets that were for us, and were not delivered; each is in one such counter
}

// Since is what was counted after before was read.
func Since(before, after []Counter) []Counter {
	changed := make([]Counter, len(after))
	for i, c := range after {
		c.Packets -= min(before[i].Packets, c.Packets) // a driver may start anew
		changed[i] = c
	}
	return changed
}

// Losses is the packets in the counters of lost ones, by place and name.
func Losses(all []Counter) map[string]uint64 {
	return named(all, func(c Counter) bool { return c.Lost })
}

// LinkLosses is what the interface lost, nil if it has no counters.
func LinkLosses(all []Counter) map[string]uint64 {
	isLink := func(c Counter) bool { return c.Place == "link" }
	if !slices.ContainsFunc(all, isLink) {
		return nil
	}
	return named(all, isLink)
}

func named(all []Counter, wanted func(Counter) bool) map[string]uint64 {
	packets := map[string]uint64{}
	for _, c := range all {
		if c.Packets > 0 && wanted(c) {
			packets[c.Place+" "+c.Name] = c.Packets
		}
	}
	return packets
}

// Sum adds what Losses tells of.
func Sum(packets map[string]uint64) (total uint64) {
	for _, n := range packets {
		total += n
	}
	return total
}

// Count is the counter of a name.
func Count(all []Counter, place, name string) uint64 {
	for _, c := range all {
		if c.Place == place && c.Name == name {
			return c.Packets
		}
	}
	return 0
}
