// SPDX-License-Identifier: Apache-2.0

package card

import (
	"slices"
)

// Counter counts packets at one place in a device.
type Counter struct {
	Place   string // XDP, socket, routers, engine, CM, or link: the interface itself
	Name    string
	Packets uint64
	Lost    bool // counts lost packets; each lost packet is in exactly one such counter
}

// Since returns the difference of two readings.
func Since(before, after []Counter) []Counter {
	changed := make([]Counter, len(after))
	for i, c := range after {
		c.Packets -= min(before[i].Packets, c.Packets) // a driver may restart its counters
		changed[i] = c
	}
	return changed
}

// Losses returns the counts of lost packets, by place and name.
func Losses(all []Counter) map[string]uint64 {
	return named(all, func(c Counter) bool { return c.Lost })
}

// LinkLosses returns the losses of the interface; nil if it has no counters.
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

// Sum returns the sum of counts.
func Sum(packets map[string]uint64) (total uint64) {
	for _, n := range packets {
		total += n
	}
	return total
}

// Count returns the value of a counter; 0 if it does not exist.
func Count(all []Counter, place, name string) uint64 {
	for _, c := range all {
		if c.Place == place && c.Name == name {
			return c.Packets
		}
	}
	return 0
}
