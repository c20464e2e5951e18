// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/needs"
)

// SwitchLab is two hosts on the ports of a switch with IGMP and MLD snooping and a querier.
//
//	A eth0 10.77.0.1/24 fd77::1/64 ── PortA br0 PortB ── eth0 10.77.0.2/24 fd77::2/64 B
type SwitchLab struct {
	PairLab
	Bridge       *lab.Bridge
	PortA, PortB string
}

// Switched creates three namespaces: a bridge, and a host on each of its two ports.
func Switched(t testing.TB, options ...lab.VethOption) *SwitchLab {
	t.Helper()
	needs.Root(t)
	bridge, err := lab.NewBridge("labtest-switch")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
	})
	hosts := &SwitchLab{PairLab: PairLab{A: New(t, "labtest-a"), B: New(t, "labtest-b")}, Bridge: bridge}
	if hosts.PortA, err = bridge.Port(hosts.A, "eth0", options...); err != nil {
		t.Fatal(err)
	}
	if hosts.PortB, err = bridge.Port(hosts.B, "eth0", options...); err != nil {
		t.Fatal(err)
	}
	hosts.addAddresses(t)
	return hosts
}
