// SPDX-License-Identifier: Apache-2.0

package t10

import (
	"bytes"
	"testing"
)

func counting() []byte {
	p := make([]byte, 32)
	for i := range p {
		p[i] = byte(i)
	}
	return p
}

// TestVectors compares checksums with published test vectors.
func TestVectors(t *testing.T) {
	t.Parallel()
	check := []byte("123456789")
	ipHeader := []byte{0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7}
	dif := func(g GuardType) Domain { return Domain{Type: SigT10DIF, T10DIF: T10DIF{Guard: g}} }
	for _, row := range []struct {
		name string
		d    Domain
		p    []byte
		want uint32
	}{
		{"CRC16 of the catalogue", dif(GuardCRC), check, 0xd0db},
		{"SBC: zeros", dif(GuardCRC), make([]byte, 32), 0},
		{"SBC: ones", dif(GuardCRC), bytes.Repeat([]byte{0xff}, 32), 0xa293},
		{"SBC: counting up", dif(GuardCRC), counting(), 0x0224},
		{"SBC: two ones", dif(GuardCRC), append([]byte{0xff, 0xff}, make([]byte, 30)...), 0x21b8},
		{"IP header", dif(GuardCSUM), ipHeader, 0xb861},
		{"RFC 1071", dif(GuardCSUM), []byte{0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7}, 0x220d},
		{"CRC32 of the catalogue", Domain{Type: SigCRC32}, check, 0xcbf43926},
		{"CRC32C of the catalogue", Domain{Type: SigCRC32C}, check, 0xe3069283},
		{"CRC32C, RFC 3720: zeros", Domain{Type: SigCRC32C}, make([]byte, 32), 0x8a9136aa},
		{"CRC32C, RFC 3720: counting up", Domain{Type: SigCRC32C}, counting(), 0x46dd794e},
		{"XOR", Domain{Type: SigXOR}, []byte{1, 2, 3, 4, 0x10, 0x20, 0x30, 0x40, 0xff}, 0xee223344},
	} {
		g := row.d.guard()
		if got := g.value(g.add(uint64(g.seed), row.p, 0)); got != row.want {
			t.Errorf("%s: 0x%x, want 0x%x", row.name, got, row.want)
		}
		if got := refGuard(&row.d, row.p); got != row.want {
			t.Errorf("%s: reference: got 0x%x, want 0x%x", row.name, got, row.want)
		}
	}
}

// TestGoldenField compares the bytes of blocks of type 1.
func TestGoldenField(t *testing.T) {
	t.Parallel()
	wire := Type1(32, GuardCRC, 0x1_0000_00ff)
	wire.T10DIF.AppTag = 0xabcd
	attrs := Attrs{Wire: wire}
	dst := bytes.Repeat([]byte{0xa5}, 81)
	send := attrs.Send()
	put, took := send.Move(dst, append(counting(), bytes.Repeat([]byte{0xff}, 32)...))
	want := append(counting(),
		0x02, 0x24, // guard
		0xab, 0xcd, // application tag
		0, 0, 0, 0xff) // reference tag: the low 32 bits of the block's address
	want = append(want, bytes.Repeat([]byte{0xff}, 32)...)
	want = append(want, 0xa2, 0x93, 0xab, 0xcd, 0, 0, 1, 0) // one more
	if put != 80 || took != 64 || !bytes.Equal(dst, append(want, 0xa5)) {
		t.Errorf("put %d, took %d:\n% x\nwant\n% x", put, took, dst, want)
	}
}
