// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/ib"
)

// A speed is described as by the kernel: by the first link type that is fast enough.
func TestWidthAndSpeed(t *testing.T) {
	for _, row := range []struct {
		mbps         int
		width, speed uint8
	}{
		{0, 1, 1}, {10, 1, 1}, {1000, 1, 1}, {2500, 1, 8}, {10000, 1, 8}, {20000, 2, 2}, {25000, 1, 32}, {40000, 2, 8},
		{50000, 16, 32}, {56000, 2, 32}, {100000, 2, 32}, {200000, 2, 64}, {400000, 2, 128}, {800000, 2, 128},
	} {
		if width, speed := widthAndSpeed(row.mbps); width != row.width || speed != row.speed {
			t.Errorf("%d Mbit/s: width %d, speed %d; want %d, %d", row.mbps, width, speed, row.width, row.speed)
		}
	}
}

// The physical state distinguishes a port without a carrier from a disabled one.
func TestPhysState(t *testing.T) {
	for _, row := range []struct {
		enabled, up bool
		want        ib.PortPhysState
	}{{false, false, ib.PhysStateDisabled}, {true, false, ib.PhysStatePolling}, {true, true, ib.PhysStateLinkUp}} {
		if got := physState(&network.Port{Enabled: row.enabled, Up: row.up}); got != row.want {
			t.Errorf("enabled %v, up %v: %v", row.enabled, row.up, got)
		}
	}
}

// An interface's speed and index are the kernel's: a veth has 10 Gbit/s.
func TestSpeedOfAnInterface(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	port, err := l.a.ctx.QueryPort(1)
	check(t, err)
	if port.InterfaceSpeed != 10000 || port.ActiveWidth != width1x || port.ActiveSpeed != speed10G {
		t.Errorf("got %d Mbit/s, width %d, speed %d", port.InterfaceSpeed, port.ActiveWidth, port.ActiveSpeed)
	}
	entries, err := l.a.ctx.QueryGIDTable(1)
	check(t, err)
	for _, entry := range entries {
		if int(entry.IfIndex) != eth0(t, l.A).Attrs().Index || entry.Interface != "eth0" {
			t.Errorf("%+v", entry)
		}
	}
}
