//go:build linux

package hca

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/nic"
	"github.com/roced/roced/verbs/hca/paths"
)

// gidTableLen is the least length of the GID table; it grows with the number of addresses.
const gidTableLen = 16

// gidTable is the port's GID table. Each address has a line of its own, which it keeps as long as
// the interface has it. Line 0 is the default: the own line of a routable IPv4 address, or, while it
// is not that, a copy of the best other line.
type gidTable struct {
	lines []wire.GID
	index map[wire.GID]int // an address's own line
}

func newGIDTable() gidTable {
	return gidTable{lines: make([]wire.GID, gidTableLen), index: map[wire.GID]int{}}
}

// clone is a table that can be changed without this one.
func (t *gidTable) clone() gidTable { return gidTable{slices.Clone(t.lines), maps.Clone(t.index)} }

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

// changes compares the table with addresses: which are new, and which are gone.
func (t *gidTable) changes(addresses []netip.Addr) (added, removed []wire.GID) {
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
	for _, gid := range t.all() {
		if _, stays := wanted[gid]; !stays {
			removed = append(removed, gid)
		}
	}
	slices.SortStableFunc(added, func(a, b wire.GID) int { return cmp.Compare(preference(a), preference(b)) })
	return added, removed
}

// apply adds and removes addresses.
func (t *gidTable) apply(added, removed []wire.GID) {
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
func (t *gidTable) chooseDefault() {
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

func (t *gidTable) get(index int) (wire.GID, error) {
	if index < 0 || index >= len(t.lines) {
		return wire.GID{}, fmt.Errorf("%w: index %d of the port's GID table, which has 0 to %d", verbs.ErrInvalid, index, len(t.lines)-1)
	}
	if t.lines[index].IsZero() {
		return wire.GID{}, fmt.Errorf("%w: index %d of the port's GID table is not in use; Context.QueryGIDTable lists those that are", verbs.ErrNoGID, index)
	}
	return t.lines[index], nil
}

// best is the best address with an IP version; zero if there is none.
func (t *gidTable) best(v4 bool) (best wire.GID) {
	for _, gid := range t.all() {
		if gid.IsIPv4() == v4 && preference(gid) < preference(best) {
			best = gid
		}
	}
	return best
}

// hint names the best line with an IP version, as part of an error.
func (t *gidTable) hint(v4 bool) string {
	best := t.best(v4)
	if best.IsZero() {
		return ": the interface has no address of the destination's"
	}
	return fmt.Sprintf(": %d is %v", t.index[best], best.Addr())
}

// attrOf describes the address handle of a path.
func (card *Card) attrOf(ends paths.Ends, class uint8) verbs.AHAttr {
	port := card.port()
	return verbs.AHAttr{
		Port: 1, SL: port.Egress[host.TOSPriority(class)],
		GRH: verbs.GlobalRoute{DGID: ends.Dest, SGIDIndex: port.gids.index[ends.Source], TrafficClass: class, HopLimit: wire.DefaultHopLimit},
	}
}

// gidIndex is the line of an address of the card.
func (card *Card) gidIndex(gid wire.GID) (int, error) {
	index, has := card.port().gids.index[gid]
	if !has {
		return 0, fmt.Errorf("%w: %v is not an address of %s", verbs.ErrNoGID, gid, card.Name())
	}
	return index, nil
}

func (t *gidTable) contains(gid wire.GID) bool {
	_, has := t.index[gid]
	return has
}

// all lists the addresses in the order of their lines.
func (t *gidTable) all() (list []wire.GID) {
	for line, gid := range t.lines {
		if own, is := t.index[gid]; is && own == line {
			list = append(list, gid)
		}
	}
	return list
}

// entries lists the lines in use, which are of an interface.
func (t *gidTable) entries(name string, index uint32) (list []verbs.GIDEntry) {
	for line, gid := range t.lines {
		if !gid.IsZero() {
			list = append(list, verbs.GIDEntry{GID: gid, Index: line, Interface: name, IfIndex: index, Type: verbs.GIDTypeRoCEv2, Port: 1})
		}
	}
	return list
}

// ListGIDs gives the entries that the GID table of a card on the interface would have if it were
// opened now. It opens no card, and needs no privilege except for InNamespace, which is the only
// option that it uses.
func ListGIDs(name string, list ...Option) (entries []verbs.GIDEntry, err error) {
	o := newOptions(list)
	err = RunIn(o.namespace, func() error {
		port, err := nic.Look(name)
		if err == nil {
			entries = firstTable(name, port)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("GIDs of %s: %w", name, err)
	}
	return entries, nil
}

func firstTable(name string, status network.Port) []verbs.GIDEntry {
	table := newGIDTable()
	table.apply(table.changes(status.Addresses))
	return table.entries(name, status.Index)
}
