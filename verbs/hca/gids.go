package hca

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// gidTableLen is how many lines the GID table has at least; it grows with the addresses.
const gidTableLen = 16

// gidTable is the port's GID table: the interface's addresses. A line keeps its
// index while its address stays, and index 0 is the one to use by default.
type gidTable struct{ lines []wire.GID }

// preference orders addresses for the default: IPv4, IPv6, link-local ones last.
func preference(g wire.GID) int {
	switch {
	case g.IsLinkLocal():
		return 2
	case g.IsIPv4():
		return 0
	}
	return 1
}

// set replaces the addresses, and says which are new and which have gone.
func (t *gidTable) set(addresses []netip.Addr) (added, removed []wire.GID) {
	var wanted []wire.GID
	for _, address := range addresses {
		if gid := wire.GIDFromAddr(address); !gid.IsMulticast() && !slices.Contains(wanted, gid) {
			wanted = append(wanted, gid)
		}
	}
	slices.SortStableFunc(wanted, func(a, b wire.GID) int { return cmp.Compare(preference(a), preference(b)) })
	for i, gid := range t.lines {
		if !gid.IsZero() && !slices.Contains(wanted, gid) {
			removed = append(removed, gid)
			t.lines[i] = wire.GID{}
		}
	}
	for _, gid := range wanted {
		if !slices.Contains(t.lines, gid) {
			added = append(added, gid)
			t.put(gid)
		}
	}
	if len(t.lines) == 0 {
		t.lines = make([]wire.GID, gidTableLen)
	}
	t.chooseDefault()
	return added, removed
}

func (t *gidTable) put(gid wire.GID) {
	free := slices.Index(t.lines, wire.GID{})
	if free < 0 {
		free = len(t.lines)
		t.lines = append(t.lines, make([]wire.GID, gidTableLen)...)
	}
	t.lines[free] = gid
}

// chooseDefault sees to it that index 0 is not empty, nor link-local, if that can be had.
func (t *gidTable) chooseDefault() {
	best := -1
	for i, gid := range t.lines {
		if !gid.IsZero() && (best < 0 || preference(gid) < preference(t.lines[best])) {
			best = i
		}
	}
	if best <= 0 {
		return
	}
	if first := t.lines[0]; first.IsZero() || first.IsLinkLocal() && !t.lines[best].IsLinkLocal() {
		t.lines[0], t.lines[best] = t.lines[best], first
	}
}

func (t *gidTable) get(index int) (wire.GID, error) {
	if index < 0 || index >= len(t.lines) || t.lines[index].IsZero() {
		return wire.GID{}, fmt.Errorf("%w: the port's GID table has no line %d; see Context.GIDs", verbs.ErrNoGID, index)
	}
	return t.lines[index], nil
}

func (t *gidTable) contains(gid wire.GID) bool { return !gid.IsZero() && slices.Contains(t.lines, gid) }

// all lists the addresses in use.
func (t *gidTable) all() []wire.GID {
	return slices.DeleteFunc(slices.Clone(t.lines), wire.GID.IsZero)
}
