// SPDX-License-Identifier: Apache-2.0

package region

import (
	"math"
	"math/big"
	"testing"

	"github.com/roced/roced/verbs/ib"
)

const testPD PD = 1

func testKey(number uint32) ib.LKey { return ib.LKey(number<<8 | 0x5A) }

// found returns the bytes of an SGE; nil if the access is not permitted.
func found(s *Table, sge ib.SGE, pd PD, write bool) []byte {
	piece, n, ok := s.Find(sge, 0, int(sge.Length), pd, write)
	if !ok || n != int(sge.Length) {
		return nil
	}
	return piece
}

// FuzzMemory compares the check of an SGE with arithmetic that does not overflow: access is permitted only if the bytes
// from the address to the address plus the length are in the region, which starts at its base.
func FuzzMemory(f *testing.F) {
	for _, base := range []uint64{0, 1, 4096, 1<<63 - 1, math.MaxUint64 - 100} {
		f.Add(base, base, uint32(100))
		f.Add(base, base-1, uint32(2))
		f.Add(base, base+100, uint32(0))
		f.Add(base, base+99, uint32(2))
		f.Add(base, uint64(math.MaxUint64), uint32(math.MaxUint32))
		f.Add(base, -base, uint32(1))
	}
	memory := make([]byte, 100)
	f.Fuzz(func(t *testing.T, base, address uint64, length uint32) {
		if base > math.MaxUint64-uint64(len(memory)) {
			return // the control plane refuses it
		}
		s := &Table{}
		s.SetMR(&MR{LKey: testKey(1), PD: testPD, Base: base, Memory: memory})
		got := found(s, ib.SGE{Addr: address, Length: length, LKey: testKey(1)}, testPD, false)
		from := new(big.Int).SetUint64(address)
		to := new(big.Int).Add(from, new(big.Int).SetUint64(uint64(length)))
		first := new(big.Int).SetUint64(base)
		behind := new(big.Int).Add(first, big.NewInt(int64(len(memory))))
		inside := from.Cmp(first) >= 0 && to.Cmp(behind) <= 0
		if inside != (got != nil) || inside && len(got) != int(length) {
			t.Fatalf("%d bytes at %#x of a region at %#x: got %d bytes, inside %v", length, address, base, len(got), inside)
		}
		if inside && length > 0 && &got[0] != &memory[address-base] {
			t.Errorf("got different memory")
		}
	})
}

// A region of another PD, a region without local write access, and a key with another low byte grant no access to any
// address.
func TestMemoryIsChecked(t *testing.T) {
	s := &Table{}
	s.SetMR(&MR{LKey: testKey(1), PD: testPD, Base: 4096, Memory: make([]byte, 10)})
	good := ib.SGE{Addr: 4096, Length: 10, LKey: testKey(1)}
	for name, row := range map[string]struct {
		key   ib.LKey
		pd    PD
		write bool
		want  bool
	}{
		"all right":       {testKey(1), testPD, false, true},
		"write":           {testKey(1), testPD, true, false},
		"another PD":      {testKey(1), testPD + 1, false, false},
		"another low key": {testKey(1) ^ 1, testPD, false, false},
		"key 0":           {0, testPD, false, false},
		"free place":      {testKey(2), testPD, false, false},
		"the same place":  {testKey(1 + 8), testPD, false, false},
		"last place":      {math.MaxUint32, testPD, false, false},
	} {
		sge := good
		sge.LKey = row.key
		if got := found(s, sge, row.pd, row.write); (got != nil) != row.want {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
}
