// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Frames with messages of RFC 2236, 3376, 2710 and 3810, including the "router alert" options.
const (
	ethernetIPv4 = "01005e4d0007 020000000001 0800 "
	ethernetIPv6 = "333300770007 020000000001 86dd "
	igmpHeader   = "46c00020 00004000 0102 0000 0a4d0002 ef4d0007 94040000 "
	mldHeader    = "60000000 0024 00 01 fe800000000000000000000000000001 ff050000000000000000000000770007 3a00 0502 0000 0100 "
)

func frame(t testing.TB, text string) []byte {
	t.Helper()
	frame, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// messageFrames lists frames and their messages. If one of the first nine is truncated, it contains no messages.
var messageFrames = []struct {
	name, frame string
	want        []MembershipMessage
}{
	{"IGMPv1 report", ethernetIPv4 + igmpHeader + "1200 0000 ef4d0007", messages(Report, "IGMPv1", "239.77.0.7")},
	{"IGMPv2 report", ethernetIPv4 + igmpHeader + "1600 0000 ef4d0007", messages(Report, "IGMPv2", "239.77.0.7")},
	{"a later fragment", ethernetIPv4 + strings.Replace(igmpHeader, "4000", "000e", 1) + "1600 0000 ef4d0007", nil},
	{"IGMPv2 leave", ethernetIPv4 + igmpHeader + "1700 0000 ef4d0007", messages(Leave, "IGMPv2", "239.77.0.7")},
	{"IGMP query for all groups", ethernetIPv4 + igmpHeader + "1164 0000 00000000", messages(Query, "IGMP", "0.0.0.0")},
	{"IGMP query for one group", ethernetIPv4 + igmpHeader + "110a 0000 ef4d0007", messages(Query, "IGMP", "239.77.0.7")},
	{"MLDv1 report", ethernetIPv6 + mldHeader + "8300 0000 0000 0000 ff050000000000000000000000770007", messages(Report, "MLDv1", "ff05::77:7")},
	{"MLDv1 done", ethernetIPv6 + mldHeader + "8400 0000 0000 0000 ff050000000000000000000000770007", messages(Leave, "MLDv1", "ff05::77:7")},
	{"MLD query for all groups", ethernetIPv6 + mldHeader + "8200 0000 03e8 0000 00000000000000000000000000000000", messages(Query, "MLD", "::")},
	{"MLD query for one group", ethernetIPv6 + mldHeader + "8200 0000 03e8 0000 ff050000000000000000000000770007", messages(Query, "MLD", "ff05::77:7")},
	{"UDP", ethernetIPv4 + strings.Replace(igmpHeader, "0102", "0111", 1) + "1600 0000 ef4d0007", nil},
	{"IGMPv3 changes to exclude nothing", ethernetIPv4 + igmpHeader + "2200 0000 0000 0001 04 00 0000 ef4d0007", messages(Report, "IGMPv3", "239.77.0.7")},
	{"IGMPv3 still excludes nothing", ethernetIPv4 + igmpHeader + "2200 0000 0000 0001 02 00 0000 ef4d0007", messages(Report, "IGMPv3", "239.77.0.7")},
	{"IGMPv3 changes to include nothing", ethernetIPv4 + igmpHeader + "2200 0000 0000 0001 03 00 0000 ef4d0007", messages(Leave, "IGMPv3", "239.77.0.7")},
	{"IGMPv3 allows a source", ethernetIPv4 + igmpHeader + "2200 0000 0000 0001 05 00 0001 ef4d0007 0a4d0001", nil},
	{
		"IGMPv3, sources and auxiliary data before the next record",
		ethernetIPv4 + igmpHeader + "2200 0000 0000 0002 03 01 0001 ef4d0008 0a4d0001 ffffffff 04 00 0000 ef4d0007",
		messages(Report, "IGMPv3", "239.77.0.7"),
	},
	{"IGMPv3, a missing record", ethernetIPv4 + igmpHeader + "2200 0000 0000 ffff 04 00 0000 ef4d0007", messages(Report, "IGMPv3", "239.77.0.7")},
	{"IGMPv3, missing sources", ethernetIPv4 + igmpHeader + "2200 0000 0000 0002 04 ff ffff ef4d0007", messages(Report, "IGMPv3", "239.77.0.7")},
	{"MLDv2 report", ethernetIPv6 + mldHeader + "8f00 0000 0000 0001 04 00 0000 ff050000000000000000000000770007", messages(Report, "MLDv2", "ff05::77:7")},
	{"MLDv2 leave", ethernetIPv6 + mldHeader + "8f00 0000 0000 0001 03 00 0000 ff050000000000000000000000770007", messages(Leave, "MLDv2", "ff05::77:7")},
	{"neighbour solicitation", ethernetIPv6 + mldHeader + "8700 0000 0000 0000 ff050000000000000000000000770007", nil},
	{"ARP", "ffffffffffff 020000000001 0806 0001 0800 0604 0001", nil},
}

func messages(kind Kind, protocol, group string) []MembershipMessage {
	return []MembershipMessage{{kind, protocol, netip.MustParseAddr(group)}}
}

func TestMembershipMessages(t *testing.T) {
	for _, row := range messageFrames {
		if got := MembershipMessages(frame(t, row.frame)); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// TestMembershipMessagesCutShort: a truncated message contains no groups.
func TestMembershipMessagesCutShort(t *testing.T) {
	for _, row := range messageFrames[:9] {
		whole := frame(t, row.frame)
		for n := range whole {
			if got := MembershipMessages(whole[:n]); got != nil {
				t.Errorf("%s, %d of %d bytes: %v", row.name, n, len(whole), got)
			}
		}
	}
}

func FuzzMembershipMessages(f *testing.F) {
	for _, row := range messageFrames {
		f.Add(frame(f, row.frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, m := range MembershipMessages(frame) {
			if m.Kind == "" || !m.Group.IsValid() || m.Protocol == "" {
				t.Errorf("%+v", m)
			}
		}
	})
}
