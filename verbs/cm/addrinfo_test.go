// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"net"
	"testing"

	"github.com/roced/roced/internal/needs"
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
		t.Run(row.node+"_"+row.service, func(t *testing.T) {
			if _, err := net.LookupHost("localhost"); err != nil && row.node == "localhost" {
				needs.Skip(t, "the name localhost: %v (echo 127.0.0.1 localhost >>/etc/hosts)", err)
			}
			list, err := cm.GetAddrInfo(guard(t), row.node, row.service, row.hints)
			check(t, err)
			for _, a := range list {
				if row.source != "" && a.Source == addr(row.source) || row.dest != "" && a.Dest == addr(row.dest) {
					return
				}
			}
			t.Errorf("%+v", list)
		})
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
