// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/vishvananda/netlink"
)

// The error for zero-copy at an RDMA MTU for which a driver lacks it names the MTU that supports it.
func TestExplainZeroCopy(t *testing.T) {
	base := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "eth7"}}
	for _, row := range []struct {
		mtu  wire.MTU
		err  error
		said bool
	}{
		{wire.MTU4096, xsk.ErrZeroCopy, true}, {wire.MTU2048, xsk.ErrZeroCopy, false}, {wire.MTU4096, xsk.ErrQueueBusy, false},
	} {
		err := (&builder{base: base, maxMTU: row.mtu}).explainZeroCopy(row.err)
		if !errors.Is(err, row.err) || strings.Contains(err.Error(), "ip link set dev eth7 mtu 2200") != row.said {
			t.Errorf("RDMA MTU %v: %v", row.mtu, err)
		}
	}
}

// Chunks are as small as the frames of an RDMA MTU allow, and hold them also if a driver counts kilobytes.
func TestChunksOfDrivers(t *testing.T) {
	for _, row := range []struct {
		driver string
		mode   xsk.Mode
		mtu    wire.MTU
		chunk  uint32
		split  bool
	}{
		{"virtio_net", xsk.Auto, wire.MTU1024, 2048, false}, {"igb", xsk.Auto, wire.MTU1024, 4096, false},
		{"igb", xsk.ZeroCopy, wire.MTU512, 2048, false}, {"igb", xsk.ZeroCopy, wire.MTU2048, 4096, false},
		{"igb", xsk.Copy, wire.MTU1024, 2048, false}, {"", xsk.Auto, wire.MTU2048, 4096, false}, {"igb", xsk.Auto, wire.MTU4096, 4096, true},
	} {
		c := (&socketPlan{driver: row.driver, mode: row.mode}).config(0, 1, row.mtu)
		if c.ChunkSize != row.chunk || c.MultiBuffer != row.split {
			t.Errorf("%+v: %+v", row, c)
		}
	}
}
