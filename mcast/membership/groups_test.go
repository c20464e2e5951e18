// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"slices"
	"testing"
)

// TestGroupLists: the kernel's lists are parsed on machines of either byte order.
func TestGroupLists(t *testing.T) {
	collect := func(parse func(string, int, func(netip.Addr)), text string, index int) (found []string) {
		parse(text, index, func(group netip.Addr) { found = append(found, group.String()) })
		return found
	}
	first := "010000E0" // 224.0.0.1 on a little-endian machine
	if native := netip.AddrFrom4([4]byte{224, 0, 0, 1}); !slices.Equal(collect(parseIGMP, "1\tlo:\n\t\t"+first+"\n", 1), []string{native.String()}) {
		first = "E0000001"
	}
	igmp := "Idx\tDevice    : Count Querier\tReporter\n" +
		"1\tlo        :     1      V3\n\t\t\t\t" + first + "     1 0:00000000\t\t0\n" +
		"12\teth0      :     2      V3\n\t\t\t\t" + first + "     1 0:00000000\t\t0\n\t\t\t\tnonsense 1\n\n"
	mld := "1    lo              ff020000000000000000000000000001     1 0000000C 0\n" +
		"12   eth0            ff050000000000000000000000010003     1 00000004 0\n" +
		"12   eth0            ff05\n12\n"
	for _, row := range []struct {
		name  string
		parse func(string, int, func(netip.Addr))
		text  string
		index int
		want  []string
	}{
		{"IGMP, the first", parseIGMP, igmp, 1, []string{"224.0.0.1"}},
		{"IGMP, the last", parseIGMP, igmp, 12, []string{"224.0.0.1"}},
		{"IGMP, no such interface", parseIGMP, igmp, 2, nil},
		{"MLD, the first", parseMLD, mld, 1, []string{"ff02::1"}},
		{"MLD, the last", parseMLD, mld, 12, []string{"ff05::1:3"}},
		{"MLD, no such interface", parseMLD, mld, 2, nil},
	} {
		if found := collect(row.parse, row.text, row.index); !slices.Equal(found, row.want) {
			t.Errorf("%s: %v, want %v", row.name, found, row.want)
		}
	}
}

// TestRemoveListed: the lists show the current groups of the namespace. A group that was left is missing; without a
// list no group is missing.
func TestRemoveListed(t *testing.T) {
	host := pair(t).A
	m := open(t, host, Socket)
	for _, way := range ways[1:] {
		check(t, m.Join(way.group))
	}
	missing := func() (list []netip.Addr) {
		left, err := m.missing()
		check(t, err)
		for group := range left {
			list = append(list, group)
		}
		return list
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if list := missing(); len(list) != 0 {
		t.Errorf("missing: %v", list)
	}
	for _, way := range ways[1:] {
		one := m.joined[way.group]
		check(t, one.hold.release())
		if list := missing(); !slices.Equal(list, []netip.Addr{way.group}) {
			t.Errorf("missing: %v, want %v", list, way.group)
		}
		var err error
		one.hold, err = joinBySocket(m.namespace, m.index, way.group)
		check(t, err)
	}
	if nobodyKnows := map[netip.Addr]struct{}{ways[1].marker: {}}; (groupList{}).removeListed(m.index, nobodyKnows) != nil || len(nobodyKnows) != 0 {
		t.Error("a group is missing although the kernel has no list")
	}
}
