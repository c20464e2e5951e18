// SPDX-License-Identifier: Apache-2.0

package t10

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// split moves a message in slices of random lengths.
func split(r *rand.Rand, transfer *Transfer, src []byte) []byte {
	dst := make([]byte, 0, 9*len(src)+64)
	for idle := 0; idle < 100; {
		n := min(r.IntN(40), len(src))
		room := dst[len(dst) : len(dst)+min(r.IntN(40), cap(dst)-len(dst))]
		put, took := transfer.Move(room, src[:n])
		src, dst = src[took:], dst[:len(dst)+put]
		if idle++; put+took > 0 {
			idle = 0
		}
	}
	return dst
}

// anyDomain returns a random domain with small blocks and small tags, so that all cases occur.
func anyDomain(r *rand.Rand, interval uint16) Domain {
	flip := func() bool { return r.IntN(2) == 0 }
	d := Domain{Type: SigType(r.IntN(5)), Interval: interval, Seed: r.Uint32() % 2}
	d.T10DIF = T10DIF{
		Guard: GuardType(r.IntN(2)), Seed: uint16(r.IntN(2)), AppTag: uint16(r.IntN(3) - 1),
		RefTag: uint32(r.IntN(4) - 2), RefRemap: flip(), AppEscape: flip(), RefEscape: flip(),
		AppTagCheckMask: []uint16{0, 0xffff, 0x00f0}[r.IntN(3)],
	}
	return d
}

// someMessage returns a random message of a domain, possibly with an error.
func someMessage(r *rand.Rand, d *Domain, data int) []byte {
	p := make([]byte, data)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	src, _ := refMove(0, &Domain{}, d, p)
	if len(src) > 0 && r.IntN(2) == 0 {
		src[r.IntN(len(src))] ^= 1 << r.IntN(8)
	}
	return src
}

// same compares a transfer with the reference.
func same(t *testing.T, r *rand.Rand, attrs *Attrs, src []byte) {
	t.Helper()
	for name, way := range map[string]struct {
		transfer Transfer
		from, to *Domain
	}{
		"send":    {attrs.Send(), &attrs.Mem, &attrs.Wire},
		"receive": {attrs.Receive(), &attrs.Wire, &attrs.Mem},
	} {
		if n, err := way.from.DataLen(len(src)); err != nil {
			continue
		} else if _, err := way.to.Len(n); err != nil {
			continue
		}
		want, failed := refMove(attrs.CheckMask, way.from, way.to, src)
		begin := way.transfer
		got := split(r, &way.transfer, src)
		if !bytes.Equal(got, want) {
			t.Fatalf("%s %+v of % x:\n% x\nwant\n% x", name, *attrs, src, got, want)
		}
		err, is := way.transfer.Failed()
		if is != (failed != nil) || is && err != *failed {
			t.Fatalf("%s %+v of % x: failed %v %v, want %v", name, *attrs, src, is, err, failed)
		}
		if !way.transfer.Whole() {
			t.Fatalf("%s %+v: a whole message is not whole", name, *attrs)
		}
		again(t, r, begin, src, want)
	}
}

// again generates a part of the message again, as for the retransmission of a packet.
func again(t *testing.T, r *rand.Rand, transfer Transfer, src, want []byte) {
	t.Helper()
	from := r.IntN(len(want) + 1)
	source, discard := transfer.Seek(uint64(from))
	if _, took := transfer.Discard(discard, src[source:]); from > 0 || discard > 0 {
		source += uint64(took)
	}
	got := make([]byte, len(want)-from)
	if put, _ := transfer.Move(got, src[source:]); put != len(got) || !bytes.Equal(got, want[from:]) {
		t.Fatalf("from byte %d, source %d, discard %d: % x, want % x", from, source, discard, got, want[from:])
	}
}

func TestTransfersEqualTheReference(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		interval := uint16(1 + r.IntN(24))
		other := interval
		if r.IntN(4) == 0 {
			other = interval * uint16(1+r.IntN(3))
		}
		attrs := Attrs{CheckMask: uint8(r.Uint32()), Mem: anyDomain(r, interval), Wire: anyDomain(r, other)}
		data := int(other) * r.IntN(6)
		same(t, r, &attrs, someMessage(r, &attrs.Mem, data))
		same(t, r, &attrs, someMessage(r, &attrs.Wire, data))
	}
}

// TestOneBitIsFound: each flipped bit of a message is detected, with its part of the field and its offset.
func TestOneBitIsFound(t *testing.T) {
	t.Parallel()
	wire := Type1(16, GuardCRC, 7)
	wire.T10DIF.AppTag, wire.T10DIF.AppTagCheckMask = 0x1234, 0xffff
	attrs := Attrs{CheckMask: 0xff, Wire: wire}
	good, _ := refMove(0, &attrs.Mem, &attrs.Wire, bytes.Repeat([]byte{0x3c}, 48))
	for bit := range 8 * len(good) {
		src := bytes.Clone(good)
		src[bit/8] ^= 0x80 >> (bit % 8)
		receive := attrs.Receive()
		receive.Discard(len(src), src)
		block, at := bit/8/24*24, bit/8%24
		want, offset := BadGuard, block+16
		switch {
		case at >= 20:
			want, offset = BadRefTag, block+20
		case at >= 18:
			want, offset = BadAppTag, block+18
		}
		err, failed := receive.Failed()
		if !failed || err.Type != want || err.Offset != uint64(offset) || err.Expected == err.Actual {
			t.Fatalf("bit %d: %v %v, want %v at %d", bit, failed, &err, want, offset)
		}
	}
}

func TestTheFirstBlockThatFailedIsKept(t *testing.T) {
	t.Parallel()
	attrs := Attrs{CheckMask: 0xff, Mem: Type2(8, GuardCSUM, 0xffffffff)}
	src, _ := refMove(0, &attrs.Wire, &attrs.Mem, make([]byte, 32))
	src[16+12+3], src[32+8] = 9, 0xaa // the reference tag of the second block, the guard of the third
	send := attrs.Send()
	if send.Discard(32, src); !send.Whole() {
		t.Error("the message did not continue")
	}
	want := Err{Type: BadRefTag, Expected: 0, Actual: 9, Offset: 28}
	if err, failed := send.Failed(); !failed || err != want {
		t.Errorf("%v %+v, want %+v", failed, err, want)
	}
	send.Forget()
	if err, failed := send.Failed(); failed {
		t.Errorf("%+v is recorded after Forget", err)
	}
	send.Seek(0)
	send.Discard(32, src)
	if err, failed := send.Failed(); !failed || err != want {
		t.Errorf("the same blocks again: %v %+v, want %+v", failed, err, want)
	}
	if text := want.Error(); text != "reference tag at byte 28: got 0x9, want 0x0" {
		t.Error(text)
	}
}

// TestEscapes: the tags that disable the check of a block depend on the type.
func TestEscapes(t *testing.T) {
	t.Parallel()
	for i, row := range []struct {
		d        Domain
		app, ref []byte
		skipped  bool
	}{
		{Type1(8, GuardCRC, 1), []byte{0xff, 0xff}, []byte{0, 0, 0, 5}, true},
		{Type1(8, GuardCRC, 1), []byte{0xff, 0xfe}, []byte{0, 0, 0, 5}, false},
		{Type2(8, GuardCRC, 1), []byte{0xff, 0xff}, []byte{0xff, 0xff, 0xff, 0xff}, true},
		{Type3(8, GuardCRC, 1), []byte{0xff, 0xff}, []byte{0, 0, 0, 5}, false},
		{Type3(8, GuardCRC, 1), []byte{0, 0}, []byte{0xff, 0xff, 0xff, 0xff}, false},
		{Type3(8, GuardCRC, 1), []byte{0xff, 0xff}, []byte{0xff, 0xff, 0xff, 0xff}, true},
	} {
		attrs := Attrs{CheckMask: CheckGuard | CheckRefTag, Wire: row.d}
		src := append(append([]byte("12345678\xba\xad"), row.app...), row.ref...)
		receive := attrs.Receive()
		receive.Discard(8, src)
		if _, failed := receive.Failed(); failed == row.skipped {
			t.Errorf("row %d: failed %v", i, failed)
		}
	}
}

// TestApart: memory with separate fields, as in SCSI and NVMe, is supplied alternately: data, then field.
func TestApart(t *testing.T) {
	t.Parallel()
	attrs := Attrs{CheckMask: 0xff, Mem: Type1(8, GuardCSUM, 3), Wire: Type1(8, GuardCRC, 3)}
	data, fields := []byte("one blockand another"[:16]), []byte(nil)
	fields = append(append(fields, refField(&attrs.Mem, 0, data[:8])...), refField(&attrs.Mem, 1, data[8:])...)
	dst := make([]byte, 32)
	send, put := attrs.Send(), 0
	for len(data)+len(fields) > 0 {
		from := &data
		inField, n := send.NextSource()
		if inField {
			from = &fields
		}
		m, took := send.Move(dst[put:], (*from)[:min(n, 3, len(*from))])
		put, *from = put+m, (*from)[took:]
	}
	m, _ := send.Move(dst[put:], nil)
	want, _ := refMove(0, &Domain{}, &attrs.Wire, []byte("one blockand another"[:16]))
	if _, failed := send.Failed(); failed || put+m != 32 || !bytes.Equal(dst, want) {
		t.Errorf("failed %v, % x, want % x", failed, dst, want)
	}
	if inField, n := send.NextDestination(); inField || n != 8 {
		t.Errorf("next is a field: %v, of %d bytes", inField, n)
	}
}

func TestInvalidDomains(t *testing.T) {
	t.Parallel()
	for _, d := range []Domain{
		{Type: SigXOR + 1, Interval: 8}, {Type: SigCRC32}, {Type: SigT10DIF, Interval: 8, T10DIF: T10DIF{Guard: 2}},
	} {
		for _, attrs := range []Attrs{{Mem: d}, {Wire: d}} {
			if err := attrs.Check(); !errors.Is(err, ErrDomain) {
				t.Errorf("%+v: %v", d, err)
			}
		}
	}
	d := Type1(512, GuardCRC, 0)
	for _, length := range []int{-512, 1, 511, 513} {
		if n, err := d.Len(length); !errors.Is(err, ErrDomain) {
			t.Errorf("%d bytes have %d with fields, %v", length, n, err)
		}
	}
	if n, err := d.DataLen(1041); !errors.Is(err, ErrDomain) {
		t.Error(n, err)
	}
	if n, err := d.Len(1024); n != 1040 || err != nil {
		t.Error(n, err)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	attrs := Attrs{CheckMask: 0xff, Mem: Type1(512, GuardCSUM, 0), Wire: Type1(512, GuardCRC, 0)}
	src, dst := make([]byte, 5200), make([]byte, 5200)
	n := testing.AllocsPerRun(10, func() {
		send := attrs.Send()
		send.Move(dst, src)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzTransfer(f *testing.F) {
	f.Add(uint64(1), uint8(0xff), uint16(8), uint16(8), []byte("12345678abcdefgh12345678ABCDEFGH"))
	f.Add(uint64(2), uint8(0x0f), uint16(4), uint16(8), make([]byte, 48))
	f.Fuzz(func(t *testing.T, seed uint64, mask uint8, mem, wire uint16, src []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		attrs := Attrs{CheckMask: mask, Mem: anyDomain(r, mem%64), Wire: anyDomain(r, wire%64)}
		if attrs.Check() != nil || mem%64 == 0 || wire%64 == 0 {
			return
		}
		same(t, r, &attrs, src)
	})
}

// BenchmarkTransfer measures the rate of each operation and of a plain copy.
func BenchmarkTransfer(b *testing.B) {
	none, crc, csum := Domain{}, Type1(512, GuardCRC, 0), Type1(512, GuardCSUM, 0)
	of := func(s SigType) Domain { return Domain{Type: s, Interval: 512} }
	const data = 64 << 10
	src, dst := make([]byte, 2*data), make([]byte, 2*data)
	b.Run("memmove", func(b *testing.B) {
		b.SetBytes(data)
		for b.Loop() {
			copy(dst[:data], src)
		}
	})
	for _, row := range []struct {
		name      string
		mem, wire Domain
	}{
		{"insert CRC16", none, crc}, {"check and strip CRC16", crc, none}, {"check and pass CRC16", crc, crc},
		{"IP checksum to CRC16", csum, crc}, {"insert IP checksum", none, csum},
		{"insert CRC32", none, of(SigCRC32)}, {"insert CRC32C", none, of(SigCRC32C)}, {"insert XOR", none, of(SigXOR)},
	} {
		attrs := Attrs{CheckMask: 0xff, Mem: row.mem, Wire: row.wire}
		from, _ := attrs.Mem.Len(data)
		src := someMessageOf(&attrs.Mem, data)
		b.Run(fmt.Sprint(row.name), func(b *testing.B) {
			b.SetBytes(data)
			for b.Loop() {
				send := attrs.Send()
				if _, took := send.Move(dst, src); took != from {
					b.Fatal(took, "of", from)
				}
			}
		})
	}
}

func someMessageOf(d *Domain, data int) []byte {
	src, _ := refMove(0, &Domain{}, d, make([]byte, data))
	return src
}
