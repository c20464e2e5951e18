// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// goldenHeaders are headers as they lie in a receive buffer.
var goldenHeaders = map[string]struct {
	header     []byte
	version    int
	networks   verbs.NetworkType
	sgid, dgid string
}{
	"IPv4": {append(make([]byte, 20),
		0x45, 0x10, 0x00, 0x30, 0x00, 0x01, 0x40, 0x00, // version and length, TOS, length, identification, flags
		0x40, 0x11, 0x26, 0xaa, // TTL, UDP, checksum
		10, 0, 0, 1, 10, 0, 0, 2,
	), 4, verbs.NetworkIPv4, "::ffff:10.0.0.1", "::ffff:10.0.0.2"},
	"IPv6": {append(append([]byte{
		0x62, 0x01, 0x23, 0x45, // version, traffic class, flow label
		0x00, 0x30, 0x11, 0x40, // length, UDP, hop limit
	}, append([]byte{0xfd, 15: 1}, 0xfd)...), append(make([]byte, 14), 2)...), 6, verbs.NetworkIPv6, "fd00::1", "fd00::2"},
	"nothing": {make([]byte, 40), 0, 0, "", ""},
}

func TestGoldenHeaders(t *testing.T) {
	for name, row := range goldenHeaders {
		if version := GetRDMAHeaderVersion(row.header); version != row.version {
			t.Errorf("%s: version %d, want %d", name, version, row.version)
		}
		sgid, dgid, err := GetGIDsFromRDMAHdr(row.header, row.networks)
		if row.version != 0 && (err != nil || sgid.String() != row.sgid || dgid.String() != row.dgid) {
			t.Errorf("%s: from %v to %v (%v), want %s and %s", name, sgid, dgid, err, row.sgid, row.dgid)
		}
	}
}

// Whatever is in a header, its version and its GIDs agree with the GRH's methods, nothing panics, and
// it is read only.
func FuzzHeader(f *testing.F) {
	for _, row := range goldenHeaders {
		f.Add(row.header, uint8(row.networks))
	}
	f.Add([]byte{0x60}, uint8(3))
	f.Fuzz(func(t *testing.T, header []byte, network uint8) {
		before, version := bytes.Clone(header), GetRDMAHeaderVersion(header)
		sgid, dgid, err := GetGIDsFromRDMAHdr(header, verbs.NetworkType(network))
		known := verbs.NetworkType(network) <= verbs.NetworkIPv6
		if (err == nil) != (known && len(header) >= wire.GRHLen) {
			t.Errorf("%d bytes, type %d: %v", len(header), network, err)
		}
		agree := map[verbs.NetworkType]int{verbs.NetworkIPv4: 4, verbs.NetworkIPv6: 6}[verbs.NetworkType(network)] == version
		if grh := verbs.GRH(header); err == nil && agree && (sgid != grh.SGID() || dgid != grh.DGID()) {
			t.Errorf("got %v to %v, want %v to %v as in the GRH", sgid, dgid, grh.SGID(), grh.DGID())
		}
		if !bytes.Equal(before, header) {
			t.Error("the header was changed")
		}
	})
}
