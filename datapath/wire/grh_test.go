// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPutGRHAsThePeer compares PutGRH with the 40 bytes that the peer's program printed before its message.
func TestPutGRHAsThePeer(t *testing.T) {
	want := []string{
		"0000000000000000000000000000000000000000456a0044a5e9400040117f8b0a6300030a630002",
		"0000000000000000000000000000000000000000456a0048a5ea400040117f860a6300030a630002",
	}
	for i, frame := range peerFrames(t, "ud_tclass") {
		grh := [GRHLen]byte(bytes.Repeat([]byte{0xA5}, GRHLen))
		mustParse(t, frame).PutGRH(&grh)
		if !bytes.Equal(grh[:], unhex(t, want[i])) {
			t.Errorf("%x, want %s", grh, want[i])
		}
	}
}

func TestPutGRHIPv6IsTheHeader(t *testing.T) {
	frame := build(t, tagged(pathIPv6), datagram(false), filler(9))
	grh := [GRHLen]byte(bytes.Repeat([]byte{0xA5}, GRHLen))
	mustParse(t, frame).PutGRH(&grh)
	if want := frame[EthernetLen+VLANLen:][:IPv6Len]; !bytes.Equal(grh[:], want) {
		t.Errorf("% x, want % x", grh, want)
	}
}

// IP headers in a GRH.
const (
	ipv4Right  = "456a0044a5e9400040117f8b0a6300030a630002"
	ipv4Wrong  = "456a0044a5e9400040117f8c0a6300030a630002" // checksum
	ipv4Words6 = "466a0044a5e9400040117e8b0a6300030a630002" // options; the checksum is correct
	notIP      = "000000000000000000000000000000000000ffff"
	zeros20    = "0000000000000000000000000000000000000000"
	garbage6   = "6fffffffffffffffffffffffffffffffffffffff" // looks like the start of IPv6
	garbage4   = "45000000000000000000000000000000deadbeef"
	ipv6Start  = "66aabcde002411fffd990000000000000000dead"
	ipv6End    = "beef0003fd990000000000000000000000000002"
)

// TestGRHVersion tests the rule of the kernel's ib_get_rdma_header_version: the first 20 bytes may have any value
// before an IPv4 header.
func TestGRHVersion(t *testing.T) {
	for _, row := range []struct {
		name, first, second string
		want                int
	}{
		{"zeros, IPv4", zeros20, ipv4Right, 4},
		{"zeros, IPv4 with a wrong checksum", zeros20, ipv4Wrong, 4},
		{"zeros, no IP", zeros20, notIP, 0},
		{"zeros only", zeros20, zeros20, 0},
		{"garbage like IPv4, IPv4", garbage4, ipv4Right, 4},
		{"garbage like IPv4, no IP", garbage4, notIP, 0},
		{"garbage like IPv6, IPv4", garbage6, ipv4Right, 4},
		{"garbage like IPv6, IPv4 with a wrong checksum", garbage6, ipv4Wrong, 6},
		{"garbage like IPv6, IPv4 with options", garbage6, ipv4Words6, 6},
		{"garbage like IPv6, zeros", garbage6, zeros20, 6},
		{"IPv6", ipv6Start, ipv6End, 6},
	} {
		if got := GRH(unhex(t, row.first+row.second)).IPVersion(); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestGRHFields(t *testing.T) {
	for _, row := range []struct {
		name         string
		grh          string
		source, dest GID
		class, hops  uint8
		label        uint32
	}{
		{"IPv4", zeros20 + ipv4Right, gid("10.99.0.3"), gid("10.99.0.2"), 0x6A, 64, 0},
		{"IPv4 behind garbage", garbage6 + ipv4Right, gid("10.99.0.3"), gid("10.99.0.2"), 0x6A, 64, 0},
		{"IPv6", ipv6Start + ipv6End, gid("fd99::dead:beef:3"), gid("fd99::2"), 0x6A, 255, 0xABCDE},
		{"no IP", zeros20 + notIP, GID{}, GID{}, 0, 0, 0},
		{"too short", (ipv6Start + ipv6End)[:2*GRHLen-2], GID{}, GID{}, 0, 0, 0},
		{"nothing", "", GID{}, GID{}, 0, 0, 0},
	} {
		g := GRH(unhex(t, row.grh))
		if g.SGID() != row.source || g.DGID() != row.dest || g.TrafficClass() != row.class || g.HopLimit() != row.hops || g.FlowLabel() != row.label {
			t.Errorf("%s: %v to %v, class %#x, hops %d, label %#x", row.name, g.SGID(), g.DGID(), g.TrafficClass(), g.HopLimit(), g.FlowLabel())
		}
		if source, dest := g.Addresses(); source != row.source || dest != row.dest {
			t.Errorf("%s: addresses %v and %v", row.name, source, dest)
		}
	}
}

// TestGRHBehindAnyGarbage reads the peer's IPv4 header after 20 random bytes.
func TestGRHBehindAnyGarbage(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	grh := GRH(unhex(t, zeros20+ipv4Right))
	for range 10_000 {
		for i := range grhIPv4 {
			grh[i] = byte(random.Uint32())
		}
		if grh.IPVersion() != 4 || grh.SGID() != gid("10.99.0.3") {
			t.Fatalf("IPv%d from %v behind % x", grh.IPVersion(), grh.SGID(), grh[:grhIPv4])
		}
	}
}
