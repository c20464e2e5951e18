package cm_test

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
)

func TestGetAddrInfo(t *testing.T) {
	for _, row := range []struct {
		node, service string
		hints         *cm.AddrInfo
		source, dest  string // of the first
	}{
		{"10.0.0.1", "7174", nil, "", "10.0.0.1:7174"},
		{"fe80::1%eth0", "7174", &cm.AddrInfo{PortSpace: cm.PortSpaceUDP, Flags: cm.AddrInfoPassive}, "[fe80::1%eth0]:7174", ""},
		{"::ffff:10.0.0.1", "", &cm.AddrInfo{Flags: cm.AddrInfoNumericHost}, "", "10.0.0.1:0"},
		{"", "domain", &cm.AddrInfo{PortSpace: cm.PortSpaceUDP, Flags: cm.AddrInfoPassive}, "0.0.0.0:53", ""},
		{"localhost", "1", nil, "", "127.0.0.1:1"},
	} {
		list, err := cm.GetAddrInfo(guard(t), row.node, row.service, row.hints)
		check(t, err)
		found := false
		for _, a := range list {
			found = found || row.source != "" && a.Source == addr(row.source) || row.dest != "" && a.Dest == addr(row.dest)
		}
		if !found {
			t.Errorf("%q, %q: %+v", row.node, row.service, list)
		}
	}
	for _, row := range []struct {
		node, service string
		hints         *cm.AddrInfo
		want          error
	}{
		{"", "1", nil, verbs.ErrInvalid}, {"localhost", "1", &cm.AddrInfo{Flags: cm.AddrInfoNumericHost}, verbs.ErrInvalid},
		{"10.0.0.1", "no such service", nil, verbs.ErrInvalid}, {"10.0.0.1", "65536", nil, verbs.ErrInvalid},
	} {
		_, err := cm.GetAddrInfo(guard(t), row.node, row.service, row.hints)
		refused(t, err, row.want)
	}
}
