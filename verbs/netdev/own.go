// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"net/netip"
	"slices"
)

// own are the interface's addresses, as last read.
type own struct {
	prefixes []netip.Prefix
	// announce is the number of remaining announcements of an address: a datagram may be lost.
	announce map[netip.Addr]int
}

const announcements = 3

func (o *own) has(a netip.Addr) bool {
	return slices.ContainsFunc(o.prefixes, func(p netip.Prefix) bool { return p.Addr() == a })
}

// onLink reports whether an address is in one of the interface's networks.
func (o *own) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(o.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// source returns the own address for a query: the packet's, or one that matches the neighbour.
func (o *own) source(from, neighbour netip.Addr) (found netip.Addr, ok bool) {
	if o.has(from) {
		return from, true
	}
	for _, p := range o.prefixes {
		if p.Addr().Is4() != neighbour.Is4() {
			continue
		}
		if found = p.Addr(); p.Contains(neighbour) {
			break
		}
	}
	return found, found.IsValid()
}

// change sets the interface's current addresses.
func (o *own) change(prefixes []netip.Prefix) {
	for _, p := range prefixes {
		if !o.has(p.Addr()) {
			o.announce[p.Addr()] = announcements
		}
	}
	o.prefixes = prefixes
	for a := range o.announce {
		if !o.has(a) {
			delete(o.announce, a)
		}
	}
}

// announced returns the announcements that are due.
func (o *own) announced() (list []resolution) {
	for a, left := range o.announce {
		list = append(list, resolution{opAsk, a, a})
		if o.announce[a] = left - 1; left == 1 {
			delete(o.announce, a)
		}
	}
	return list
}
