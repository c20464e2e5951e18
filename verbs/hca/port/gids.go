// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// gidTableLen is the minimum length of the GID table; it grows with the number of addresses.
const gidTableLen = 16

// GIDTable is the port's GID table. Each address has its own line, which it keeps as long as the interface has it. Line
// 0 is the default: the own line of a routable IPv4 address, or otherwise a copy of the best other line.
type GIDTable struct {
	lines []wire.GID
	index map[wire.GID]int // an address's own line
}

func NewGIDTable() GIDTable {
	return GIDTable{lines: make([]wire.GID, gidTableLen), index: map[wire.GID]int{}}
}

// clone returns an independent copy of the table.
func (t *GIDTable) clone() GIDTable { return GIDTable{slices.Clone(t.lines), maps.Clone(t.index)} }

// preference orders addresses for the default: IPv4, IPv6, link-local, zero.
func preference(g wire.GID) int {
	switch {
	case g.IsZero():
		return 3
	case g.IsLinkLocal():
		return 2
	case g.IsIPv4():
		return 0
	}
	return 1
}

// Changes compares the table with addresses, and returns those to add and to remove.
func (t *GIDTable) Changes(addresses []netip.Addr) (added, removed []wire.GID) {
	wanted := map[wire.GID]struct{}{}
	for _, address := range addresses {
		gid := wire.GIDFromAddr(address)
		if _, twice := wanted[gid]; twice || gid.IsMulticast() {
			continue
		}
		wanted[gid] = struct{}{}
		if !t.contains(gid) {
			added = append(added, gid)
		}
	}
	for _, gid := range t.All() {
		if _, stays := wanted[gid]; !stays {
			removed = append(removed, gid)
		}
	}
	slices.SortStableFunc(added, func(a, b wire.GID) int { return cmp.Compare(preference(a), preference(b)) })
	return added, removed
}

// Apply adds and removes addresses.
func (t *GIDTable) Apply(added, removed []wire.GID) {
	for _, gid := range removed {
		t.lines[t.index[gid]] = wire.GID{}
		delete(t.index, gid)
	}
	t.chooseDefault()
	free := 1
	for _, gid := range added {
		if preference(gid) == 0 && preference(t.lines[0]) > 0 {
			t.lines[0], t.index[gid] = gid, 0
			continue
		}
		for free < len(t.lines) && !t.lines[free].IsZero() {
			free++
		}
		if free == len(t.lines) {
			t.lines = append(t.lines, make([]wire.GID, gidTableLen)...)
		}
		t.lines[free], t.index[gid] = gid, free
	}
	t.chooseDefault()
}

// chooseDefault keeps the default unless there is a better one.
func (t *GIDTable) chooseDefault() {
	best := t.lines[0]
	if !t.contains(best) {
		best = wire.GID{}
	}
	for _, gid := range t.lines[1:] {
		if preference(gid) < preference(best) {
			best = gid
		}
	}
	t.lines[0] = best
}

func (t *GIDTable) Get(index int) (wire.GID, error) {
	if index < 0 || index >= len(t.lines) {
		return wire.GID{}, fmt.Errorf("%w: index %d of the port's GID table, which has 0 to %d", verbs.ErrInvalid, index, len(t.lines)-1)
	}
	if t.lines[index].IsZero() {
		return wire.GID{}, fmt.Errorf("%w: index %d of the port's GID table is not in use; Context.QueryGIDTable lists those that are", verbs.ErrNoGID, index)
	}
	return t.lines[index], nil
}

// Best returns the best address with an IP version, or zero.
func (t *GIDTable) Best(v4 bool) (best wire.GID) {
	for _, gid := range t.All() {
		if gid.IsIPv4() == v4 && preference(gid) < preference(best) {
			best = gid
		}
	}
	return best
}

// Hint names the best line with an IP version, as part of an error.
func (t *GIDTable) Hint(v4 bool) string {
	best := t.Best(v4)
	if best.IsZero() {
		return ": the interface has no address of the destination's"
	}
	return fmt.Sprintf(": %d is %v", t.index[best], best.Addr())
}

func (t *GIDTable) contains(gid wire.GID) bool {
	_, has := t.index[gid]
	return has
}

// Len returns the number of lines, in use or not.
func (t *GIDTable) Len() int { return len(t.lines) }

// All lists the addresses in the order of their lines.
func (t *GIDTable) All() (list []wire.GID) {
	for line, gid := range t.lines {
		if own, is := t.index[gid]; is && own == line {
			list = append(list, gid)
		}
	}
	return list
}

// Entries lists the lines in use, with the name and the index of the interface.
func (t *GIDTable) Entries(name string, index uint32) (list []verbs.GIDEntry) {
	for line, gid := range t.lines {
		if !gid.IsZero() {
			list = append(list, verbs.GIDEntry{GID: gid, Index: line, Interface: name, IfIndex: index, Type: ib.GIDTypeRoCEv2, Port: 1})
		}
	}
	return list
}
