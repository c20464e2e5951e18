// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/netip"
	"testing"
)

func TestPKeyMatches(t *testing.T) {
	for _, row := range []struct {
		name string
		a, b PKey
		want bool
	}{
		{"default, both full", 0xFFFF, 0xFFFF, true},
		{"default, one limited", 0xFFFF, 0x7FFF, true},
		{"default, both limited", 0x7FFF, 0x7FFF, false},
		{"another partition", 0xFFFF, 0xFFFE, false},
		{"another partition, limited", 0x8001, 0x0002, false},
		{"same partition, both full", 0x8001, 0x8001, true},
		{"same partition, one limited", 0x8001, 0x0001, true},
		{"same partition, both limited", 0x0001, 0x0001, false},
		{"invalid, both full", 0x8000, 0x8000, false},
		{"invalid, one limited", 0x8000, 0x0000, false},
		{"invalid, both limited", 0x0000, 0x0000, false},
	} {
		if got := row.a.Matches(row.b); got != row.want {
			t.Errorf("%s: %v and %v match: %v", row.name, row.a, row.b, got)
		}
		if got := row.b.Matches(row.a); got != row.want {
			t.Errorf("%s, reversed: %v and %v match: %v", row.name, row.b, row.a, got)
		}
	}
}

func TestGID(t *testing.T) {
	for _, row := range []struct {
		address                    string
		text                       string
		v4, multicast, local, zero bool
	}{
		{"10.99.0.2", "::ffff:10.99.0.2", true, false, false, false},
		{"::ffff:10.99.0.2", "::ffff:10.99.0.2", true, false, false, false},
		{"169.254.1.1", "::ffff:169.254.1.1", true, false, true, false},
		{"223.255.255.255", "::ffff:223.255.255.255", true, false, false, false},
		{"224.0.0.1", "::ffff:224.0.0.1", true, true, false, false},
		{"239.255.255.255", "::ffff:239.255.255.255", true, true, false, false},
		{"240.0.0.1", "::ffff:240.0.0.1", true, false, false, false},
		{"255.255.255.255", "::ffff:255.255.255.255", true, false, false, false},
		{"0.0.0.0", "::ffff:0.0.0.0", true, false, false, false},
		{"fd99::2", "fd99::2", false, false, false, false},
		{"fe80::1", "fe80::1", false, false, true, false},
		{"ff02::1", "ff02::1", false, true, false, false},
		{"ff0e::1:2:3", "ff0e::1:2:3", false, true, false, false},
		{"ff0e::ffff:224.1.2.3", "ff0e::ffff:e001:203", false, true, false, false},
		{"::224.1.2.3", "::e001:203", false, false, false, false}, // IPv4-compatible: not RoCE's
		{"1::ffff:224.1.2.3", "1::ffff:e001:203", false, false, false, false},
		{"::", "::", false, false, false, true},
	} {
		addr := netip.MustParseAddr(row.address)
		g := GIDFromAddr(addr)
		if g.IsIPv4() != row.v4 || g.IsMulticast() != row.multicast || g.IsLinkLocal() != row.local || g.IsZero() != row.zero {
			t.Errorf("%s: IPv4 %v, multicast %v, link-local %v, zero %v", row.address, g.IsIPv4(), g.IsMulticast(), g.IsLinkLocal(), g.IsZero())
		}
		if g.String() != row.text || g.Addr() != addr.Unmap() {
			t.Errorf("%s: prints %s, address %v", row.address, g, g.Addr())
		}
	}
	if zoned := GIDFromAddr(netip.MustParseAddr("fe80::1%eth0")); zoned != gid("fe80::1") {
		t.Errorf("zone kept: %v", zoned)
	}
}

func TestMulticastMAC(t *testing.T) {
	for group, want := range map[string]string{
		"224.0.0.1":                "01:00:5e:00:00:01",
		"239.1.2.3":                "01:00:5e:01:02:03",
		"239.129.2.3":              "01:00:5e:01:02:03", // the same: 23 bits
		"239.255.255.255":          "01:00:5e:7f:ff:ff",
		"ff02::1":                  "33:33:00:00:00:01",
		"ff0e::1:89ab:cdef":        "33:33:89:ab:cd:ef",
		"ff0e::ffff:239.129.2.3":   "33:33:ef:81:02:03",
		"ff05:1:2:3:4:5:abcd:4321": "33:33:ab:cd:43:21",
	} {
		if mac := MulticastMAC(gid(group)); mac.String() != want {
			t.Errorf("%s: %v, want %s", group, mac, want)
		}
	}
}

func TestMTU(t *testing.T) {
	for _, row := range []struct {
		ifMTU int
		want  MTU
	}{
		{-1, 0}, {0, 0}, {80, 0}, {335, 0}, {336, MTU256}, {591, MTU256}, {592, MTU512}, {1103, MTU512}, {1104, MTU1024},
		{1500, MTU1024}, {2127, MTU1024}, {2128, MTU2048}, {4175, MTU2048}, {4176, MTU4096}, {4200, MTU4096}, {9000, MTU4096}, {1 << 30, MTU4096},
	} {
		if got := MTUFor(row.ifMTU); got != row.want {
			t.Errorf("interface MTU %d: %v, want %v", row.ifMTU, got, row.want)
		}
	}
	sizes := []int{0, 256, 512, 1024, 2048, 4096, 0}
	for m, want := range sizes {
		if got := MTU(m).Bytes(); got != want {
			t.Errorf("MTU %d: %d bytes, want %d", m, got, want)
		}
	}
	if MTU(255).Bytes() != 0 || MTU1024.String() != "1024" {
		t.Errorf("MTU 255: %d bytes, 1024 prints %v", MTU(255).Bytes(), MTU1024)
	}
}

// TestFlowLabel compares the kernel's two formulas with values computed by hand.
func TestFlowLabel(t *testing.T) {
	for _, row := range []struct {
		local, remote QPN
		label         uint32
		port          uint16
	}{
		{1, 1, 0x00001, 0xC001},
		{0, 0x123456, 0x00000, 0xC000},
		{0x13, 0x13, 0x00169, 0xC169},
		{0x11, 0xFFFFFF, 0xFFEE0, 0xFEDF},
		{0x789ABC, 0x123456, 0x313B2, 0xD3BE},
		{0xFFFFFF, 0xFFFFFF, 0xFFF1E, 0xFF21}, // the product takes 48 bits
	} {
		label := FlowLabel(row.local, row.remote)
		if label != row.label || label != FlowLabel(row.remote, row.local) || SourcePort(label) != row.port {
			t.Errorf("%v and %v: label %#x, port %#x, want %#x, %#x", row.local, row.remote, label, SourcePort(label), row.label, row.port)
		}
	}
}

func TestSourcePort(t *testing.T) {
	for label, want := range map[uint32]uint16{
		0: 0xC000, 1: 0xC001, 0x3FFF: 0xFFFF, 0x4000: 0xC001, 0x12345: 0xE341, 0xABCDE: 0xFCF4, 0xFC000: 0xC03F, 0xFFFFF: 0xFFC0,
		0xFFF00001: 0xC001, // only 20 bits count
	} {
		if got := SourcePort(label); got != want {
			t.Errorf("flow label %#x: port %#x, want %#x", label, got, want)
		}
	}
}

func TestPrinted(t *testing.T) {
	for _, row := range []struct{ got, want string }{
		{QPN(0x12).String(), "0x000012"},
		{QPNMulticast.String(), "0xffffff"},
		{QKeyGSI.String(), "0x80010000"},
		{PKey(0x7FFF).String(), "0x7fff"},
		{MAC{0, 1, 0xAB, 0xCD, 0xEF, 0xFF}.String(), "00:01:ab:cd:ef:ff"},
	} {
		if row.got != row.want {
			t.Errorf("%s, want %s", row.got, row.want)
		}
	}
}
