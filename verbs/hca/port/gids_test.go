// SPDX-License-Identifier: Apache-2.0

package port

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errtest"
	"golang.org/x/sys/unix"
)

var refused = errtest.Refused

func addresses(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

// Lines that are in use, by index.
func shown(g *GIDTable) (all []string) {
	for _, gid := range g.lines {
		if gid.IsZero() {
			all = append(all, "")
		} else {
			all = append(all, gid.Addr().String())
		}
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// Each step sets all addresses of the interface; each keeps its line, and line 0 is the default: a routable one, IPv4
// first, if there is one.
func TestGIDTable(t *testing.T) {
	type step struct{ addresses, want []string }
	rows := map[string][]step{
		"IPv4 first, link-local last": {
			{[]string{"fe80::1", "fd00::1", "169.254.1.1", "10.0.0.1"}, []string{"10.0.0.1", "fd00::1", "fe80::1", "169.254.1.1"}},
		},
		"a line stays": {
			{[]string{"10.0.0.1", "10.0.0.2", "fd00::1"}, []string{"10.0.0.1", "10.0.0.2", "fd00::1"}},
			{[]string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.1", "", "fd00::1"}},
			{[]string{"10.0.0.1", "fd00::1", "10.0.0.3"}, []string{"10.0.0.1", "10.0.0.3", "fd00::1"}},
		},
		"without IPv4 the default is a copy, and others keep their lines": {
			{[]string{"fe80::1"}, []string{"fe80::1", "fe80::1"}},
			{[]string{"fe80::1", "fd00::1"}, []string{"fd00::1", "fe80::1", "fd00::1"}},
			{[]string{"fe80::1", "fd00::1", "10.0.0.1"}, []string{"10.0.0.1", "fe80::1", "fd00::1"}},
		},
		"a default stays while it is as good as others": {
			{[]string{"10.0.0.2"}, []string{"10.0.0.2"}},
			{[]string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.2", "10.0.0.1"}},
			{[]string{"10.0.0.1"}, []string{"10.0.0.1", "10.0.0.1"}},
			{[]string{"10.0.0.1", "10.0.0.3"}, []string{"10.0.0.1", "10.0.0.1", "10.0.0.3"}},
		},
		"an IPv4 address that goes and comes back is the default again": {
			{[]string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.1", "fd00::1"}},
			{[]string{"fd00::1"}, []string{"fd00::1", "fd00::1"}},
			{[]string{"fd00::1", "10.0.0.1"}, []string{"10.0.0.1", "fd00::1"}},
		},
		"a default that goes is replaced by the best": {
			{[]string{"10.0.0.1", "fe80::1", "fd00::1", "10.0.0.2"}, []string{"10.0.0.1", "10.0.0.2", "fd00::1", "fe80::1"}},
			{[]string{"fe80::1", "fd00::1", "10.0.0.2"}, []string{"10.0.0.2", "10.0.0.2", "fd00::1", "fe80::1"}},
			{[]string{"fe80::1", "fd00::1"}, []string{"fd00::1", "", "fd00::1", "fe80::1"}},
			{[]string{"fe80::1"}, []string{"fe80::1", "", "", "fe80::1"}},
			{nil, nil},
		},
		"groups are no GIDs, and none is there twice": {
			{[]string{"224.1.2.3", "ff0e::1", "10.0.0.1", "::ffff:10.0.0.1"}, []string{"10.0.0.1"}},
		},
	}
	for name, steps := range rows {
		t.Run(name, func(t *testing.T) {
			table := NewGIDTable()
			had := map[wire.GID]bool{}
			for _, step := range steps {
				added, removed := table.Changes(addresses(step.addresses...))
				table.Apply(added, removed)
				if got := shown(&table); !slices.Equal(got, step.want) {
					t.Errorf("with %q: %q, want %q", step.addresses, got, step.want)
				}
				for _, gid := range added {
					had[gid] = true
				}
				for _, gid := range removed {
					delete(had, gid)
				}
				if len(had) != len(table.All()) || len(table.lines) < gidTableLen {
					t.Errorf("with %q: told of %v, and has %v", step.addresses, had, table.All())
				}
			}
		})
	}
}

func TestGIDTableGrows(t *testing.T) {
	table := NewGIDTable()
	var many []netip.Addr
	for i := range 100 {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}))
	}
	table.Apply(table.Changes(many))
	for i, address := range many {
		if got, err := table.Get(i); err != nil || got.Addr() != address {
			t.Fatalf("line %d: %v, %v", i, got, err)
		}
	}
	_, err := table.Get(len(table.lines) - 1)
	refused(t, err, unix.ENODATA, "not in use")
	for _, index := range []int{-1, len(table.lines)} {
		_, err := table.Get(index)
		refused(t, err, unix.EINVAL, "has 0 to")
	}
}
